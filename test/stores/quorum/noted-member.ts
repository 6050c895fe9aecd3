import type { Member } from "../../../runtime/stores/quorum/master";
import { but } from "../../simulation/tampering";
import { flat, type FlatStore } from "../../support/flat-store";

/** Decides what happens to a command to a master. */
export type MemberFate = <Reply>(send: () => Promise<Reply>) => Promise<Reply>;

/** A master that reports each command, and whose `fate` the test controls. */
export class NotedMember implements Member {
  readonly store: FlatStore;
  readonly #member: Member;
  fate: MemberFate = (send) => send();
  startedAtMs: number | Error | undefined;

  /** @param note called with the name of each command */
  constructor(member: Member, note: (command: string) => void) {
    this.#member = member;
    const store = flat(member.store);
    const send = <Reply>(name: string, carryOut: () => Promise<Reply>): Promise<Reply> => {
      note(name);
      return this.fate(carryOut);
    };
    this.store = but(store, {
      acquire: (request, ms) => send("acquire", () => store.acquire(request, ms)),
      renew: (requests, ms) => send("renew", () => store.renew(requests, ms)),
      release: (request, ms) => send("release", () => store.release(request, ms)),
      peek: (keys, ms) => send("peek", () => store.peek(keys, ms)),
      enqueue: (request, ms) => send("enqueue", () => store.enqueue(request, ms)),
      dequeue: (key, place, ms) => send("dequeue", () => store.dequeue(key, place, ms)),
      releaseAndEnqueue: (held, request, ms) =>
        send("releaseAndEnqueue", () => store.releaseAndEnqueue(held, request, ms)),
    });
  }

  /** The master's store, without the effect of `fate`. */
  get inside(): FlatStore {
    return flat(this.#member.store);
  }

  raiseFence(...args: Parameters<Member["raiseFence"]>): Promise<void> {
    return this.fate(() => this.#member.raiseFence(...args));
  }

  async startedAt(): Promise<number> {
    if (this.startedAtMs instanceof Error) throw this.startedAtMs;
    return this.startedAtMs ?? (await this.#member.startedAt());
  }

  close(): Promise<void> {
    return this.#member.close();
  }
}
