import { Redis } from "ioredis";

/**
 * A lock library as one client uses it: one connection for commands, shared by all callers of the client.
 *
 * All libraries run with the defaults of their documentation, on the same ioredis. Two settings must be equal: the lock time, and an
 * unlimited wait budget. How often a waiter of a library polls is the library's own choice, and stays unchanged.
 */
export interface Contestant {
  /** Runs the section under the lock of `key`, however long acquiring it takes. */
  run(key: string, section: () => Promise<void>): Promise<void>;
  /** Runs the section under the lock, and does not wait for the reply to the release. Not every library can do that. */
  runWithoutWaiting?(key: string, section: () => Promise<void>): Promise<void>;
  /** Acquires the lock of `key`. The library renews it in its own way until it is released. */
  hold(key: string): Promise<Held>;
  /** Closes the connection. Called when no lock is held. */
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

/** Implements `hold` for libraries that renew only inside a function. The function ends when the lock is released. */
export function holdInside(using: (section: () => Promise<void>) => Promise<void>): Promise<Held> {
  return new Promise((onHeld, onRefused) => {
    const ended = using(() => new Promise((endSection) => onHeld({ release: () => (endSection(), ended) })));
    ended.catch(onRefused);
  });
}
