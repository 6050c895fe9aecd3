import type { EnqueueRequest } from "../port";
import type { Master } from "./master";
import { patienceOf, type Masters } from "./masters";

/** Where those who wait stand in line. */
export class QuorumQueue {
  readonly #masters: Masters;
  readonly #standing = new Map<string, Master>();

  constructor(masters: Masters) {
    this.#masters = masters;
  }

  /** It has what it waited for, and stands nowhere. */
  served(place: string): void {
    this.#standing.delete(place);
  }

  /** From now on it stands in line at that master, and at no other. */
  stands({ key, ticket }: EnqueueRequest, gate: Master, patienceMs: number): void {
    const before = this.#standing.get(ticket);
    if (before !== undefined && before !== gate)
      void leaveAt(before, key, ticket, patienceMs).catch(() => {});
    this.#standing.set(ticket, gate);
  }

  async dequeue(key: string, place: string, timeoutMs: number): Promise<void> {
    const patienceMs = patienceOf(timeoutMs);
    const gate = this.#standing.get(place) ?? this.#masters.gates(key, patienceMs)[0];
    this.#standing.delete(place);
    if (gate !== undefined) await leaveAt(gate, key, place, timeoutMs);
  }
}

function leaveAt(master: Master, key: string, place: string, timeoutMs: number): Promise<void> {
  return master.ask((store) => store.dequeue(key, place, timeoutMs));
}
