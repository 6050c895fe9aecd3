import { Redis } from "ioredis";

/**
 * A lock library as one client runs it: one connection for commands, shared by all callers of the client.
 *
 * All run at the defaults that their documentation gives, on the same ioredis, except for two things that must
 * be equal: the lock time, and a patience that never ends. How often a library looks again while it waits is
 * its own choice, and stays as it is.
 */
export interface Contestant {
  /** Runs the section under the lock of `key`, however long it takes to get it. */
  run(key: string, section: () => Promise<void>): Promise<void>;
  /** The same, without waiting for the reply to the release. Not all can. */
  runAndLeave?(key: string, section: () => Promise<void>): Promise<void>;
  /** Takes the lock of `key` and keeps it, renewed by the library's own means, until it is released. */
  hold(key: string): Promise<Held>;
  /** Closes the connection. Called when nothing is held. */
  close(): Promise<void>;
}

export interface Held {
  release(): Promise<unknown>;
}

export type Enter = (redis: Redis, lockTimeMs: number) => Promise<Contestant>;

export async function connect(port: number): Promise<Redis> {
  const redis = new Redis({ host: "127.0.0.1", port, lazyConnect: true });
  await redis.connect();
  return redis;
}

/** `hold` for libraries that renew only inside a function: the function ends when the lock is released. */
export function holdInside(using: (section: () => Promise<void>) => Promise<void>): Promise<Held> {
  return new Promise((onHeld, onRefused) => {
    const ended = using(() => new Promise((endSection) => onHeld({ release: () => (endSection(), ended) })));
    ended.catch(onRefused);
  });
}
