import type { EnqueueRequest } from "../port";
import type { Master } from "./master";
import { patienceOf, type Masters } from "./masters";

/**
 * Remembers which masters have each waiter in their queues. A waiter belongs in the queue of one gate. If its ticket stayed in the queue of
 * an earlier gate, that gate would reserve the key for a caller that no longer asks there.
 */
export class QuorumQueue {
  readonly #masters: Masters;
  /** The masters that have each ticket, or may have it, because they did not reply yet. */
  readonly #queued = new Map<string, Set<Master>>();

  constructor(masters: Masters) {
    this.#masters = masters;
  }

  /** Notes a command that may enqueue the ticket at this master. Call it before the command is sent. */
  asks(ticket: string, master: Master): void {
    const queued = this.#queued.get(ticket) ?? new Set();
    this.#queued.set(ticket, queued.add(master));
  }

  /**
   * Removes the ticket from the queues that may have it, without waiting for the replies.
   *
   * @param served the gate that granted the key to the waiter. The ticket has left the queue there
   */
  leave({ key, ticket }: EnqueueRequest, patienceMs: number, served?: Master): void {
    const queued = this.#queued.get(ticket) ?? [];
    this.#queued.delete(ticket);
    for (const master of queued)
      if (master !== served) dequeueAt(master, key, ticket, patienceMs).catch(() => {});
  }

  /** Notes that the waiter is in the queue of this gate. Removes it from those of all other masters. */
  enqueued({ key, ticket }: EnqueueRequest, gate: Master, patienceMs: number): void {
    this.asks(ticket, gate);
    const queued = this.#queued.get(ticket) ?? new Set();
    for (const master of queued) {
      if (master === gate || !master.mayBeAsked(patienceMs)) continue;
      queued.delete(master);
      // A master that does not reply is asked again when the waiter is enqueued the next time.
      dequeueAt(master, key, ticket, patienceMs).catch(() => queued.add(master));
    }
  }

  /** Removes the ticket from the queues that may have it. Resolves when they have replied. */
  async dequeue(key: string, ticket: string, timeoutMs: number): Promise<void> {
    const queued = this.#queued.get(ticket) ?? this.#masters.gates(key, patienceOf(timeoutMs)).slice(0, 1);
    this.#queued.delete(ticket);
    await Promise.all(Array.from(queued, (master) => dequeueAt(master, key, ticket, timeoutMs)));
  }
}

function dequeueAt(master: Master, key: string, ticket: string, timeoutMs: number): Promise<void> {
  return master.ask((store) => store.queue.dequeue(key, ticket, timeoutMs));
}
