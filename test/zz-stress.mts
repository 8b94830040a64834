import { fork } from "node:child_process"; import { once } from "node:events"; import fs from "node:fs";
import { eventLog, readEventLog } from "/work/main/src/observers/event-log.ts";
let bad=0, torn=0, lost=0, rounds=Number(process.argv[2]??20);
for (let r=0;r<rounds;r++){
  const path=`/tmp/stress-${process.pid}.jsonl`; fs.rmSync(path,{force:true});
  const counts:number[]=[];
  await Promise.all(Array.from({length:6},async(_,i)=>{ const c=fork("/work/main/test/observers/fixtures/log-writer.ts",[path,`p${i}`,"10"],{execArgv:["--import","tsx"],cwd:"/work/main"}); let last=0; const stop=200+Math.floor(Math.random()*600); c.on("message",(n:number)=>{last=n; if(n>=stop) c.kill("SIGKILL")}); await once(c,"exit"); counts[i]=last;}));
  const l=eventLog({path}); l.onEvent({type:"node.start",timestamp:"2026",source:"s",runId:"z",data:{node:"n",step:0}}); await l.close();
  const lines=fs.readFileSync(path,"utf8").trimEnd().split("\n");
  for (const x of lines){ try { if (JSON.parse(x).event==="log.torn") torn++ } catch { bad++; console.log("BAD", x.slice(0,80).replace(/x{10,}/g,"xx"), x.length, x.slice(-120).replace(/x{10,}/g,"xx")) } }
  for (let i=0;i<6;i++){ const seen=new Set(); for (let run=0;run<10;run++) for await (const line of readEventLog({path},`p${i}-${run}`)) seen.add(`${line.run} ${line.step}`); if (seen.size<counts[i]!) {lost+=counts[i]!-seen.size; console.log("LOST",counts[i],seen.size)} }
  fs.rmSync(path);
}
console.log({rounds,bad,torn,lost});
