import { now } from "../../clock.js";
import type { JobData, JobQueue, RunJob } from "../../worker/job.js";
import type { Network, Server } from "./network.js";
import type { Process, World } from "./world.js";

/** A job on the server; one that has ended is gone, unless it failed. */
interface JobRow {
  readonly id: string;
  readonly data: JobData;
  readonly where: "waiting" | "delayed" | "active" | "failed";
  /** Its place among the waiting jobs. */
  readonly order: number;
  /** When it is due, in milliseconds since 1970, by the clock of the caller. */
  readonly due: number;
  /** Its holder, and until when, by the clock of the server. */
  readonly token: string;
  readonly lockedUntil: number;
  readonly attemptsStarted: number;
  readonly attemptsMade: number;
  readonly stalledCounter: number;
}

/** Faults of the queue's own logic that a test plants. */
export interface QueueBugs {
  /** A job whose worker has died is not given to another. */
  readonly noRedelivery?: boolean;
}

/** The age up to which a power cut can lose a write, in milliseconds: as in a Redis that syncs every second. */
const UNSYNCED = 1000;

/** A queue server, like BullMQ's on Redis or Postgres: jobs with locks that expire. */
export class QueueServer implements Server {
  readonly #world: World;
  readonly #bugs: QueueBugs;
  readonly #jobs = new Map<string, JobRow>();
  /** What each of the last writes replaced, oldest first. */
  #undo: { readonly at: number; readonly id: string; readonly before: JobRow | undefined }[] = [];
  #orders = 0;
  isUp = true;
  generation = 0;

  constructor(world: World, bugs: QueueBugs) {
    this.#world = world;
    this.#bugs = bugs;
  }

  sync(): void {}

  /** Cuts the power: the last `lost` writes are gone, unless they are too old for that. */
  cutPower(lost: number): void {
    const young = this.#undo.filter(({ at }) => this.#world.time - at < UNSYNCED);
    for (const { id, before } of young.slice(Math.max(young.length - lost, 0)).reverse()) {
      if (before === undefined) this.#jobs.delete(id);
      else this.#jobs.set(id, before);
    }
    this.#undo = [];
    this.generation++;
    this.isUp = false;
  }

  /** Loses all jobs. */
  clear(): void {
    this.#jobs.clear();
    this.#undo = [];
  }

  add(id: string, data: JobData, due: number | undefined): void {
    if (this.#jobs.has(id)) return;
    const where = due === undefined ? "waiting" : "delayed";
    const none = { token: "", lockedUntil: 0, attemptsStarted: 0, attemptsMade: 0 };
    const order = ++this.#orders;
    this.#put(id, { id, data, where, due: due ?? 0, order, ...none, stalledCounter: 0 });
  }

  get(id: string): JobRow | undefined {
    return this.#jobs.get(id);
  }

  /** Gives the next job to a worker: first one whose own worker let its lock expire. */
  take(token: string, lock: number, at: number): JobRow | undefined {
    const { time } = this.#world;
    for (const job of this.#jobs.values()) {
      const isStalled = job.where === "active" && job.lockedUntil <= time;
      if (isStalled && !this.#bugs.noRedelivery) {
        const stalledCounter = job.stalledCounter + 1;
        this.#put(job.id, { ...job, where: "waiting", order: -stalledCounter, stalledCounter });
      } else if (job.where === "delayed" && job.due <= at) {
        this.#put(job.id, { ...job, where: "waiting", order: ++this.#orders });
      }
    }
    const waiting = [...this.#jobs.values()].filter(({ where }) => where === "waiting");
    const [next] = waiting.sort((a, b) => a.order - b.order);
    if (next === undefined) return undefined;
    return this.#put(next.id, {
      ...next,
      ...{ where: "active", token, lockedUntil: time + lock },
      attemptsStarted: next.attemptsStarted + 1,
    });
  }

  /** Extends a lock; `false` if the job has another. */
  extendLock(id: string, token: string, lock: number): boolean {
    const job = this.#jobs.get(id);
    if (job?.token !== token || job.where !== "active") return false;
    this.#put(id, { ...job, lockedUntil: this.#world.time + lock });
    return true;
  }

  /** Changes a job that its worker has. */
  move(
    id: string,
    token: string,
    change: (job: JobRow) => Partial<Pick<JobRow, "where" | "due" | "attemptsMade">>,
  ): void {
    const job = this.#locked(id, token);
    this.#put(id, { ...job, order: ++this.#orders, token: "", ...change(job) });
  }

  putFirst(id: string): void {
    const job = this.#jobs.get(id);
    if (job?.where === "waiting") this.#put(id, { ...job, order: -1 });
  }

  complete(id: string, token: string): void {
    this.#locked(id, token);
    this.#put(id, undefined);
  }

  promote(id: string): void {
    const job = this.#jobs.get(id);
    if (job?.where !== "delayed") throw new Error(`job ${id} is not delayed`);
    this.#put(id, { ...job, where: "waiting", order: ++this.#orders });
  }

  update(id: string, data: JobData): void {
    const job = this.#jobs.get(id);
    if (job === undefined) throw new Error(`there is no job ${id}`);
    this.#put(id, { ...job, data });
  }

  #locked(id: string, token: string): JobRow {
    const job = this.#jobs.get(id);
    if (job?.where === "active" && job.token === token) return job;
    throw new Error(`job ${id} has no lock ${token}`);
  }

  #put<T extends JobRow | undefined>(id: string, job: T): T {
    const { time } = this.#world;
    this.#undo = this.#undo.filter(({ at }) => time - at < UNSYNCED);
    this.#undo.push({ at: time, id, before: this.#jobs.get(id) });
    if (job === undefined) this.#jobs.delete(id);
    else this.#jobs.set(id, job);
    return job;
  }
}

/** The queue as one process reaches it, over the network. */
export class SimulatedQueue implements JobQueue {
  readonly #process: Process;
  readonly #network: Network;
  readonly #server: QueueServer;

  constructor(process: Process, network: Network, server: QueueServer) {
    this.#process = process;
    this.#network = network;
    this.#server = server;
  }

  async add(
    _graph: string,
    data: JobData,
    { jobId = "", delay }: Parameters<JobQueue["add"]>[2],
  ): Promise<{ readonly id: string }> {
    const due = delay === undefined ? undefined : now() + delay;
    await this.#call(`add ${jobId}`, () => this.#server.add(jobId, data, due));
    return { id: jobId };
  }

  async getJob(id: string): ReturnType<JobQueue["getJob"]> {
    const job = await this.#call(`get ${id}`, () => this.#server.get(id));
    if (job === undefined) return undefined;
    const promote = () => this.#call(`promote ${id}`, () => this.#server.promote(id));
    return { data: job.data, promote };
  }

  async getJobState(id: string): ReturnType<JobQueue["getJobState"]> {
    const job = await this.#call(`state of ${id}`, () => this.#server.get(id));
    return job?.where ?? "unknown";
  }

  /** The next job, as BullMQ gives it to a worker. */
  async take(token: string, lock: number): Promise<RunJob | undefined> {
    const at = now();
    const taken = await this.#call("take", () => this.#server.take(token, lock, at));
    if (taken === undefined) return undefined;
    const { id, data, attemptsStarted, attemptsMade, stalledCounter } = taken;
    const move = (what: string, to: "delayed" | "waiting", due: number) =>
      this.#call(`${what} ${id}`, () => this.#server.move(id, token, () => ({ where: to, due })));
    const job: RunJob = {
      ...{ id, data, attemptsStarted, attemptsMade, stalledCounter },
      updateData: async (changed) => {
        await this.#call(`update ${id}`, () => this.#server.update(id, changed));
        job.data = changed;
      },
      moveToDelayed: (due) => move("delay", "delayed", due),
      moveToWait: () => move("put back", "waiting", 0),
    };
    return job;
  }

  extendLock(id: string, token: string, lock: number): Promise<boolean> {
    return this.#call(`lock ${id}`, () => this.#server.extendLock(id, token, lock));
  }

  putFirst(id: string): Promise<void> {
    return this.#call(`put first ${id}`, () => this.#server.putFirst(id));
  }

  complete(id: string, token: string): Promise<void> {
    return this.#call(`complete ${id}`, () => this.#server.complete(id, token));
  }

  /** Retries a job after this many milliseconds; without a delay it has failed for good. */
  fail(id: string, token: string, retryAfter: number | undefined): Promise<void> {
    const due = now() + (retryAfter ?? 0);
    const where = retryAfter === undefined ? "failed" : "delayed";
    return this.#call(`fail ${id}`, () =>
      this.#server.move(id, token, ({ attemptsMade }) => {
        return { where, due, attemptsMade: attemptsMade + 1 };
      }),
    );
  }

  #call<T>(what: string, serve: () => T): Promise<T> {
    return this.#network.call(this.#process, `queue ${what}`, serve);
  }
}
