/** Reports to the world what a process sends and receives. */
export interface ProcessObserver {
  /** Something was delivered. */
  onDelivered(): void;
  /** A command that may take a key is sent. */
  onAcquireSent(requestId: string): void;
  /** A command that ends a hold is sent. */
  onReleaseSent(requestId: string): void;
  /** A reply arrives that a command acquired a key. */
  onAcquired(requestId: string): void;
  /** A reply arrives that the key did not have the hold to release. */
  onNotReleased(key: string, requestId: string): void;
  /** Commands fail and are retried in no time, so the process does nothing else. */
  onSpinning(): void;
}

/** More commands that fail in the same moment of virtual time are an endless loop. */
const MOST_REFUSED_AT_ONCE = 500;

/** Counts the commands that fail in the same moment. */
export class Refusals {
  #at = 0;
  #count = 0;

  /** Counts one more. Returns whether the commands fail without end. */
  isSpinning(now: number): boolean {
    this.#count = this.#at === now ? this.#count + 1 : 1;
    this.#at = now;
    return this.#count > MOST_REFUSED_AT_ONCE;
  }
}
