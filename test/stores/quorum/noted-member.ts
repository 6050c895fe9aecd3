import type { Store } from "../../../runtime/stores/port";
import type { Member } from "../../../runtime/stores/quorum/master";
import { but } from "../../simulation/tampering";

/** What becomes of a command to a master. */
export type MemberFate = <Reply>(send: () => Promise<Reply>) => Promise<Reply>;

/** A master whose commands are noted, and met with a fate of the test's own. */
export class NotedMember implements Member {
  readonly store: Store;
  readonly #member: Member;
  fate: MemberFate = (send) => send();
  startedAtMs: number | Error | undefined;

  /** @param note told of each command, by its name */
  constructor(member: Member, note: (command: string) => void) {
    this.#member = member;
    const { store } = member;
    const send = <Reply>(name: string, carryOut: () => Promise<Reply>): Promise<Reply> => {
      note(name);
      return this.fate(carryOut);
    };
    this.store = but(store, {
      take: (request, ms) => send("take", () => store.take(request, ms)),
      renew: (requests, ms) => send("renew", () => store.renew(requests, ms)),
      drop: (request, ms) => send("drop", () => store.drop(request, ms)),
      look: (keys, ms) => send("look", () => store.look(keys, ms)),
      place: (request, ms) => send("place", () => store.place(request, ms)),
      leave: (key, place, ms) => send("leave", () => store.leave(key, place, ms)),
      next: (held, request, ms) => send("next", () => store.next(held, request, ms)),
    });
  }

  /** What is in it, past its fate. */
  get inside(): Store {
    return this.#member.store;
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
