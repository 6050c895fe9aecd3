import { Lock } from "../lock/lock";
import type { Terms } from "../lock/locker";
import { MultiLock } from "../lock/multi-lock";
import { assertWanted } from "../lock/on-abort";

// Locks whose wait ends by a signal of the tag. `withLock()` passes its signal to each try instead. The woven steps pass only the lock,
// so the lock has the signal. These are classes of their own, so that other locks do not grow.

export class LockWithSignal extends Lock {
  readonly endsWait: AbortSignal;

  constructor(terms: Terms, key: string, signal: AbortSignal) {
    super(terms, key);
    this.endsWait = signal;
  }

  override acquire(signal = this.endsWait): Promise<boolean> {
    return super.acquire(signal);
  }

  override assertMayBegin(): void {
    assertWanted(this, this.endsWait);
    super.assertMayBegin();
  }
}

export class MultiLockWithSignal extends MultiLock {
  readonly endsWait: AbortSignal;

  constructor(terms: Terms, keys: readonly string[], signal: AbortSignal) {
    super(terms, keys);
    this.endsWait = signal;
  }

  override acquire(signal = this.endsWait): Promise<boolean> {
    return super.acquire(signal);
  }

  override assertMayBegin(): void {
    assertWanted(this, this.endsWait);
    super.assertMayBegin();
  }
}
