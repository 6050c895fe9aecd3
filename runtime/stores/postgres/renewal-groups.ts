import { loadCrypto } from "../../base/node-crypto";
import { partsOf } from "../../base/tick-batch";
import type { RenewRequest } from "../port";

/** The fewest holds that form a group. Fewer would not be worth it. */
export const FEWEST_TOGETHER = 16;

/** The most holds in one group. They join it in one statement. If one of them is no longer renewed, the others join another group. */
export const MOST_TOGETHER = 256;

export type HoldName = Pick<RenewRequest, "key" | "requestId">;

/** Requests of one group. */
export interface GroupRequests {
  readonly group: RenewalGroup;
  readonly requests: readonly RenewRequest[];
  readonly lockTimeMs: number;
}

/** The plan to renew some holds. */
export interface RenewalPlan {
  /** The requests for all holds of a group. One row renews them. */
  readonly whole: readonly GroupRequests[];
  /** Requests that join a new group. */
  readonly joining: readonly GroupRequests[];
  readonly others: readonly RenewRequest[];
}

/** Holds that share a row in the table `renewal_group`. */
export class RenewalGroup {
  readonly id: string;
  /** The names of all holds that the server may have in this group, and that may not have ended. */
  readonly members = new Set<string>();
  /** The holds whose end the server has confirmed since the last renewal was sent. */
  ended: HoldName[] = [];
  /** The number of renewals that the server has confirmed. */
  renewals = 0;
  /** Whether a command is in flight that the group depends on. */
  isBusy = true;
  /** On the monotonic clock: the time at which the group expires, unless it is renewed. */
  endsAt = Infinity;

  constructor(id: string) {
    this.id = id;
  }
}

/**
 * Knows which holds of this process share a row on the server. A group is renewed only as a whole. If one of its holds is missing in a renewal,
 * its release may have got no reply. Then this class forgets the group. Nobody renews it again, so the hold ends in time.
 */
export class RenewalGroups {
  readonly #fewest: number;
  readonly #groups = new Set<RenewalGroup>();
  readonly #groupOf = new Map<string, RenewalGroup>();
  readonly #prefix: string;
  #created = 0;

  /**
   * @param fewest the fewest holds that form a group
   * @param prefix 16 hexadecimal digits with which the IDs of the groups begin
   */
  constructor(fewest = FEWEST_TOGETHER, prefix = loadCrypto().randomBytes(8).toString("hex")) {
    this.#fewest = fewest;
    this.#prefix = prefix;
  }

  /** Decides how to renew these holds. Groups of other holds stay as they are. */
  plan(requests: readonly RenewRequest[], now: number): RenewalPlan {
    for (const group of this.#groups) if (group.endsAt <= now) this.giveUp(group);
    const found = new Map<RenewalGroup, RenewRequest[]>();
    const rest: RenewRequest[] = [];
    for (const request of requests) {
      const group = this.#groupOf.get(nameOf(request));
      if (group === undefined) rest.push(request);
      else addTo(found, group, request);
    }
    const whole: GroupRequests[] = [];
    for (const [group, some] of found) {
      const lockTimeMs = sharedLockTime(some);
      if (lockTimeMs !== undefined && !group.isBusy && namesOf(some).size === group.members.size) {
        whole.push({ group, requests: some, lockTimeMs });
      } else {
        this.giveUp(group);
        rest.push(...some);
      }
    }
    return { whole, ...this.#join(rest) };
  }

  /** Puts plain requests with the same lock time into new groups, if there are enough of them. */
  #join(requests: readonly RenewRequest[]): Pick<RenewalPlan, "joining" | "others"> {
    const others: RenewRequest[] = [];
    const names = new Set<string>();
    const byLockTime = new Map<number, RenewRequest[]>();
    for (const request of requests) {
      const name = nameOf(request);
      if (isPlain(request) && !names.has(name)) addTo(byLockTime, request.lockTimeMs, request);
      else others.push(request);
      names.add(name);
    }
    const joining: GroupRequests[] = [];
    for (const [lockTimeMs, plain] of byLockTime) {
      for (const part of partsOf(plain, MOST_TOGETHER)) {
        if (part.length < this.#fewest) others.push(...part);
        else joining.push({ group: this.#create(part), requests: part, lockTimeMs });
      }
    }
    return { joining, others };
  }

  /** Returns a new group. Its ID is larger than all earlier ones, because the server moves a hold only to a group with a larger ID. */
  #create(requests: readonly RenewRequest[]): RenewalGroup {
    this.#created += 1;
    const group = new RenewalGroup(this.#prefix + this.#created.toString(16).padStart(16, "0"));
    this.#groups.add(group);
    for (const name of namesOf(requests)) {
      group.members.add(name);
      this.#groupOf.set(name, group);
    }
    return group;
  }

  has(group: RenewalGroup, hold: HoldName): boolean {
    return this.#groupOf.get(nameOf(hold)) === group;
  }

  /** Notes that the server has put these holds into the group, and no others. */
  created(group: RenewalGroup, holds: Iterable<HoldName>, endsAt: number): void {
    const names = namesOf(holds);
    for (const name of group.members) if (!names.has(name)) this.#remove(name, group);
    group.endsAt = endsAt;
    group.isBusy = false;
  }

  /** Notes that the server has renewed the group. */
  renewed(group: RenewalGroup, endsAt: number): void {
    group.renewals += 1;
    group.endsAt = endsAt;
    group.isBusy = false;
  }

  /** Notes that the server has confirmed the end of a hold. */
  ended({ key, requestId }: HoldName): void {
    const name = nameOf({ key, requestId });
    const group = this.#groupOf.get(name);
    if (group === undefined) return;
    group.ended.push({ key, requestId });
    this.#remove(name, group);
  }

  /** Forgets a group, so that nobody renews it again. */
  giveUp(group: RenewalGroup): void {
    for (const name of group.members) this.#remove(name, group);
  }

  #remove(name: string, group: RenewalGroup): void {
    group.members.delete(name);
    if (group.members.size === 0) this.#groups.delete(group);
    if (this.#groupOf.get(name) === group) this.#groupOf.delete(name);
  }
}

/** Adds an item to the list of a key. */
function addTo<Key, Item>(lists: Map<Key, Item[]>, key: Key, item: Item): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

function nameOf({ key, requestId }: HoldName): string {
  return `${requestId} ${key}`;
}

function namesOf(holds: Iterable<HoldName>): ReadonlySet<string> {
  return new Set(Array.from(holds, nameOf));
}

/** Returns the lock time of these requests, if all of them are plain and have the same one. */
function sharedLockTime(requests: readonly RenewRequest[]): number | undefined {
  const [first] = requests;
  const isShared = requests.every((request) => isPlain(request) && request.lockTimeMs === first?.lockTimeMs);
  return isShared ? first?.lockTimeMs : undefined;
}

/** Whether the request changes nothing but the time of an exclusive hold, and needs no standbys. */
function isPlain({ fencing, permits = 1, replicas = 0 }: RenewRequest): boolean {
  return !fencing && permits === 1 && replicas === 0;
}
