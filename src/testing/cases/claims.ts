import assert from "node:assert/strict";
import type { Case } from "./case.js";
import { notes } from "./case.js";

/** Who works on a run. */
export const claims: readonly Case[] = [
  [
    "a run that is claimed can't be claimed again until it is released",
    async (store) => {
      if (store.claim === undefined) return;
      const claim = await store.claim("run");
      assert.ok(claim, "a free run can be claimed");
      assert.equal(await store.claim("run"), undefined);
      assert.ok(await store.claim("other"), "another run can be claimed");
      await claim.release();
      await claim.release();
      const second = await store.claim("run");
      assert.ok(second, "a run that was released can be claimed");
      await claim.release();
      assert.equal(await store.claim("run"), undefined);
      await second.release();
    },
  ],
  [
    "of many who claim a run at once, exactly one has it",
    async (store) => {
      if (store.claim === undefined) return;
      for (let round = 0; round < 5; round++) {
        const tries = Array.from({ length: 8 }, () => store.claim?.("run"));
        const won = (await Promise.all(tries)).filter((claim) => claim !== undefined);
        assert.equal(won.length, 1);
        await won[0]?.release();
      }
    },
  ],
  [
    "holder says who has claimed a run, and nobody once it is released",
    async (store) => {
      if (store.claim === undefined || store.holder === undefined) return;
      assert.equal(await store.holder("run"), undefined);
      const claim = await store.claim("run");
      const holder = await store.holder("run");
      assert.equal(typeof holder?.pid, "number");
      assert.ok(holder?.host, "the machine has a name");
      assert.ok(holder.since === "" || !Number.isNaN(Date.parse(holder.since)));
      assert.equal(await store.holder("other"), undefined);
      await claim?.release();
      assert.equal(await store.holder("run"), undefined);
    },
  ],
  [
    "a claim keeps nobody from saving, and is no run",
    async (store) => {
      if (store.claim === undefined) return;
      const claim = await store.claim("run");
      assert.deepEqual(await store.list(), []);
      const saved = await store.save(notes("run"));
      await store.save(saved.set("topic", "marks"));
      await store.delete("run");
      assert.deepEqual(await store.list(), []);
      await claim?.release();
      assert.ok(await store.claim("run"));
    },
  ],
  [
    "a claim of one instance counts for another",
    async (store, reopen) => {
      if (store.claim === undefined || reopen === undefined) return;
      const claim = await store.claim("run");
      const again = await reopen(store);
      assert.equal(await again.claim?.("run"), undefined);
      await claim?.release();
      const second = await again.claim?.("run");
      assert.ok(second);
      assert.equal(await store.claim("run"), undefined);
      await second.release();
      await again.close?.();
    },
  ],
];
