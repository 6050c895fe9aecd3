import type { EnqueueRequest } from "../port";
import type { Master } from "./master";
import { patienceOf, type Masters } from "./masters";

/** Knows the master in whose queue each waiter is. */
export class QuorumQueue {
  readonly #masters: Masters;
  readonly #gates = new Map<string, Master>();

  constructor(masters: Masters) {
    this.#masters = masters;
  }

  /** Forgets a waiter that acquired its lock. */
  served(ticket: string): void {
    this.#gates.delete(ticket);
  }

  /** Records that the waiter is in the queue of this master only. Leaves the queue of an earlier gate. */
  enqueued({ key, ticket }: EnqueueRequest, gate: Master, patienceMs: number): void {
    const before = this.#gates.get(ticket);
    if (before !== undefined && before !== gate)
      void dequeueAt(before, key, ticket, patienceMs).catch(() => {});
    this.#gates.set(ticket, gate);
  }

  async dequeue(key: string, ticket: string, timeoutMs: number): Promise<void> {
    const patienceMs = patienceOf(timeoutMs);
    const gate = this.#gates.get(ticket) ?? this.#masters.gates(key, patienceMs)[0];
    this.#gates.delete(ticket);
    if (gate !== undefined) await dequeueAt(gate, key, ticket, timeoutMs);
  }
}

function dequeueAt(master: Master, key: string, ticket: string, timeoutMs: number): Promise<void> {
  return master.ask((store) => store.queue.dequeue(key, ticket, timeoutMs));
}
