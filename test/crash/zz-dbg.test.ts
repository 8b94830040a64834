import { test } from "vitest";
import { isWaymarkError, State } from "waymark";
import { JournalStore } from "waymark/stores/journal";
import { World } from "./world.js";

const dump = (world: any) => {
  for (const [path, bytes] of world.disk.contents()) {
    console.log(path);
    for (const l of Buffer.from(bytes).toString().split("\n")) {
      if (l) {
        try {
          const o = JSON.parse(l);
          delete o.sha256;
          const h = o.snapshot ?? o.patch;
          if (o.records) {
            console.log("  records", JSON.stringify(o.records.lines), o.records.after.slice(-8));
            continue;
          }
          if (o.anchors) {
            console.log("  anchors", JSON.stringify(o.anchors));
            continue;
          }
          console.log(
            "  ",
            Object.keys(o)[2],
            h
              ? `${h.runId} ${h.sequence} ${h.checkpointId.slice(-8)} prev ${(h.previous ?? h.parentId).slice(-8)}`
              : "",
          );
        } catch {
          console.log("   ?? " + l.slice(0, 100));
        }
      }
    }
  }
};
test("dbg", async () => {
  let words = 0;
  const world = new World(Number(process.env.SEED ?? 28));
  const saved: any[] = [];
  const open = (fs: any) =>
    new JournalStore(
      { root: "/w", keep: 2, durability: "os", snapshotEvery: 3, logBytes: 1200 },
      fs,
    );
  let p = 0;
  for (const runId of ["a", "b", "c"])
    for (let k = 0; k < 2; k++) {
      const name = `p${p++}`;
      world.startOn(async (fs0) => {
        const fs: any = new Proxy(fs0 as any, {
          get(t, k) {
            const v = t[k];
            if (typeof v !== "function") return v;
            return (...a: any[]) => {
              const r = v.apply(t, a);
              if (["unlink", "rename", "create"].includes(String(k)))
                r.then(
                  (x: any) => saved.push(`${world.time} ${name} ${String(k)} ${a.join(" ")}`),
                  (e: any) =>
                    saved.push(
                      `${world.time} ${name} ${String(k)} ${a.join(" ")} FAILED ${e.code}`,
                    ),
                );
              return r;
            };
          },
        });
        const store = open(fs);
        for (let life = 0; life < 2; life++) {
          let state: any;
          try {
            state = await store.load(runId);
          } catch (e) {
            if (!isWaymarkError(e, "CHECKPOINT_NOT_FOUND")) throw e;
            state = State.create({ words: [] as string[] }, { runId });
          }
          try {
            for (let c = 0; c < 4; c++) {
              state = await store.save(state.set("words", [...state.data.words, `w${++words}`]));
              saved.push(
                `${world.time} ${name} ${runId} ${state.sequence} ${state.data.words.join()} ${state.checkpointId.slice(-8)}`,
              );
            }
          } catch (e) {
            if (!isWaymarkError(e, "CHECKPOINT_CONFLICT")) throw e;
            saved.push(`${world.time} ${name} ${runId} conflict`);
          }
        }
        await store.close();
      });
    }
  await world.run();
  console.log(saved.join("\n"));
  dump(world);
  for (const r of ["a", "b", "c"]) {
    const f = await open(world.disk.mount())
      .load<any>(r)
      .catch((e) => ({ sequence: String(e), data: { words: [] } }));
    console.log(r, f.sequence, f.data.words.join());
  }
});
