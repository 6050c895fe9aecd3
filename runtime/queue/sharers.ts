import type { Clock } from "../clock";
import { MOST_PERMITS } from "../limits";
import type { Holder } from "./holder";
import type { Lease } from "./lease";
import type { Waiter } from "./waiter";

/** The line of one who waits to share a key: it has one of its own. */
export interface SharersLine {
  readonly key: string;
  readonly first: Waiter | undefined;
  /** The first has what it waited for. */
  served(): void;
}

/** What this process has of one key beside which others may be, and wants of it. */
interface OfKey {
  readonly leases: Set<Lease>;
  /** In the order in which they came. */
  readonly waiting: Set<SharersLine>;
  /** Those who would find no room. */
  readonly heldBack: Set<SharersLine>;
}

/**
 * Those in this process who hold keys with `permits`, or wait to. As many as there are permits may be of use to each other, and so
 * no more of them ask the store at once. (Readers are not held back: as many as come may be inside.)
 */
export class Sharers {
  readonly #clock: Clock;
  readonly #keys = new Map<string, OfKey>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  joins(line: SharersLine, waiter: Waiter): void {
    if (isOfFew(waiter)) this.#of(line.key).waiting.add(line);
  }

  /** It waits no more. */
  leaves(line: SharersLine): void {
    const of = this.#keys.get(line.key);
    if (of?.waiting.delete(line) !== true) return;
    of.heldBack.delete(line);
    this.#roomMayBe(line.key);
  }

  holds(lease: Lease): void {
    if (lease.holder !== undefined && isOfFew(lease.holder)) this.#of(lease.key).leases.add(lease);
  }

  /** It has ended, or is lost: for those who wait it counts no more. */
  ends(lease: Lease): void {
    if (this.#keys.get(lease.key)?.leases.delete(lease) === true) this.#roomMayBe(lease.key);
  }

  /** Whether there may be room for the one who waits. Otherwise it is woken when there may be. */
  mayAsk(line: SharersLine, waiter: Waiter): boolean {
    const of = this.#keys.get(line.key);
    if (of === undefined || !of.waiting.has(line)) return true;
    let before = this.#heldOf(of);
    for (const other of of.waiting) {
      if (other === line) break;
      before += 1;
      if (before >= waiter.permits) break;
    }
    const mayAsk = before < waiter.permits;
    if (mayAsk) of.heldBack.delete(line);
    else of.heldBack.add(line);
    return mayAsk;
  }

  /** Whom one who is held back waits for, if it has the key. */
  holderOf(key: string): Holder | undefined {
    const [lease] = this.#keys.get(key)?.leases ?? [];
    return lease?.holder;
  }

  /** Who may have the lease next: the first of those who wait, if it is to share the key with as many. */
  nextFor({ key, holder }: Lease): SharersLine | undefined {
    const [line] = this.#keys.get(key)?.waiting ?? [];
    return line?.first?.permits === holder?.permits ? line : undefined;
  }

  #of(key: string): OfKey {
    let of = this.#keys.get(key);
    if (of === undefined) {
      of = { leases: new Set(), waiting: new Set(), heldBack: new Set() };
      this.#keys.set(key, of);
    }
    return of;
  }

  /** One that nobody renews may be over under its body. */
  #heldOf({ leases }: OfKey): number {
    const now = this.#clock.now();
    let held = 0;
    for (const lease of leases) if (lease.untilExpiry(now) > 0) held += 1;
    return held;
  }

  #roomMayBe(key: string): void {
    const of = this.#keys.get(key);
    if (of === undefined) return;
    if (of.leases.size + of.waiting.size === 0) this.#keys.delete(key);
    let before = this.#heldOf(of);
    for (const line of Array.from(of.heldBack.size > 0 ? of.waiting : [])) {
      if (before >= (line.first?.permits ?? 0)) break;
      before += 1;
      if (of.heldBack.delete(line)) line.first?.wake();
    }
  }
}

function isOfFew({ permits }: Pick<Waiter, "permits">): boolean {
  return permits > 1 && permits < MOST_PERMITS;
}
