import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";

/** A way to a server that can go silent, as a cut cable or a forgotten NAT entry does. */
export interface ServerProxy {
  /** The address of the server, by this way. */
  readonly url: string;
  /** How many connections were made. */
  readonly count: number;
  /** From now on it accepts connections, and swallows what is sent; those it has stay open, and dead. */
  silence(): void;
  /** New connections get through again; those that went silent stay so. */
  heal(): void;
  /** Ends all connections. */
  cut(): void;
  stop(): Promise<void>;
}

/** Puts a proxy before the server of an address. */
export async function startProxy(to: string): Promise<ServerProxy> {
  const target = new URL(to);
  const sockets = new Set<Socket>();
  const pairs = new Set<readonly [Socket, Socket]>();
  let isSilent = false;
  let count = 0;
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    return socket;
  };
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const swallow = (socket: Socket): void => {
    socket.unpipe();
    socket.removeAllListeners("end");
    socket.on("data", () => {}).resume();
  };
  const server = createServer({ allowHalfOpen: true }, (near) => {
    count++;
    keep(near);
    if (isSilent) return swallow(near);
    const far = keep(dial(Number(target.port), target.hostname));
    const pair = [near, far] as const;
    pairs.add(pair);
    near.pipe(far).on("close", () => pairs.has(pair) && near.destroy());
    far.pipe(near).on("close", () => pairs.has(pair) && far.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(to);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    get count() {
      return count;
    },
    silence() {
      isSilent = true;
      for (const pair of pairs) pair.forEach(swallow);
      pairs.clear();
    },
    heal() {
      isSilent = false;
    },
    cut,
    async stop() {
      cut();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
