import type { Redis } from "ioredis";
import { newId } from "../../store-contract/subject";
import { ACQUIRE, HAND_ON, LEAVE, RELEASE_MANY, RELEASE_ONE, RENEW_MANY, WAIT } from "./scripts";

/** Sends the commands of a version 0.1 process. Its key names are correct for keys without braces. */
export class OldStore {
  readonly inbox = `lockweave:inbox:${newId()}`;
  readonly #client: Redis;

  constructor(client: Redis) {
    this.#client = client;
  }

  /** @returns whether it was granted */
  async acquire(key: string, requestId: string, lockTimeMs = 600_000): Promise<boolean> {
    const holder = await this.#client.call("set", key, requestId, "PX", lockTimeMs, "NX", "GET");
    return holder === null || holder === requestId;
  }

  /** @returns the token */
  async acquireFenced(key: string, requestId: string): Promise<number> {
    const reply = await this.#client.eval(ACQUIRE, 2, key, fenceOf(key), requestId, 600_000, "1");
    return Number((reply as string[])[1]);
  }

  /** @returns whether it was granted */
  async wait(key: string, requestId: string): Promise<boolean> {
    const reply = await this.#client.eval(WAIT, 2, key, queueOf(key), requestId, this.inbox, 600_000);
    return (reply as string[])[0] === "granted";
  }

  async leave(key: string, requestId: string): Promise<void> {
    await this.#client.eval(LEAVE, 2, key, queueOf(key), requestId, this.inbox);
  }

  async renew(key: string, requestId: string): Promise<unknown> {
    return ((await this.#client.eval(RENEW_MANY, 1, key, requestId, 600_000)) as unknown[])[0];
  }

  async release(key: string, requestId: string): Promise<unknown> {
    return await this.#client.eval(RELEASE_ONE, 2, key, queueOf(key), requestId);
  }

  async releaseMany(key: string, requestId: string): Promise<unknown> {
    return ((await this.#client.eval(RELEASE_MANY, 2, key, queueOf(key), requestId)) as unknown[])[0];
  }

  async handOn(key: string, requestId: string, next: string): Promise<unknown> {
    const args = [requestId, next, this.inbox, 600_000];
    return ((await this.#client.eval(HAND_ON, 2, key, queueOf(key), ...args)) as unknown[])[0];
  }
}

const queueOf = (key: string): string => `{${key}}:queue`;
const fenceOf = (key: string): string => `{${key}}:fence`;
