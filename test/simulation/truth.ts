/** Who holds a key by the server's own words, and who has a place in its queue, in order. */
interface KeyTruth {
  holder: { readonly requestId: string; expiresAt: number } | undefined;
  /** Offered by the queue, and not yet taken. */
  claimant: { readonly requestId: string; readonly expiresAt: number } | undefined;
  freeSince: number;
  readonly places: Set<string>;
  lastToken: number;
}

/** What a process may let in its callers on, one after the other. */
export interface Grant {
  /** When the first section began on it. */
  since: number | undefined;
  /** In which life of the server. */
  readonly generation: number;
  /** How many sections have run on it. */
  sections: number;
}

const CLAIM_LASTS_MS = 1_500;

/** A process writes its number in the `requestId`s of its locks. */
export function requestIdOf(process: number, n: number): string {
  return process.toString(16).padStart(8, "0") + n.toString(16).padStart(24, "0");
}

export function processOf(requestId: string): number {
  return Number.parseInt(requestId.slice(0, 8), 16);
}

/**
 * What the server has said and done, noted down from the outside. A process may be sure of a key only as long
 * as this says so too, whoever else asks for it or does not.
 */
export class Truth {
  /** How often the server has lost everything. */
  generation = 0;
  readonly #now: () => number;
  readonly #report: (problem: string) => void;
  /** Whether places end only when they are served: then the order of the queue is kept to the letter. */
  readonly #isCalm: boolean;
  readonly #keys = new Map<string, KeyTruth>();
  readonly #gone = new Set<string>();
  readonly #grants = new Map<string, Grant>();
  /** Which key each of those who wait, or waited, is for. */
  readonly #waitFor = new Map<string, string>();

  constructor(now: () => number, report: (problem: string) => void, isCalm: boolean) {
    this.#now = now;
    this.#report = report;
    this.#isCalm = isCalm;
  }

  /** The process that holds the key now. */
  holder(key: string): number | undefined {
    const holder = this.#live(this.#of(key).holder);
    return holder === undefined ? undefined : processOf(holder.requestId);
  }

  /** Since when nobody has the key, nor was offered it. */
  freeSince(key: string): number {
    const truth = this.#of(key);
    const last = truth.holder ?? truth.claimant;
    if (this.#live(last) !== undefined) return Infinity;
    return last?.expiresAt ?? truth.freeSince;
  }

  /** What was last granted to that request. */
  grantTo(requestId: string): Grant | undefined {
    return this.#grants.get(requestId);
  }

  granted(key: string, requestId: string, lockTimeMs: number, fresh: boolean, token?: number): void {
    const truth = this.#of(key);
    const holder = this.#live(truth.holder);
    if (holder !== undefined && holder.requestId !== requestId)
      this.#report(`${key} was granted to ${requestId} while ${holder.requestId} held it`);
    const claimed = this.#live(truth.claimant);
    if (fresh) truth.holder = { requestId, expiresAt: this.#now() + lockTimeMs };
    else truth.holder ??= claimed;
    if (claimed?.requestId !== requestId) this.#serve(key, truth, requestId);
    truth.claimant = undefined;
    const { generation } = this;
    this.#grants.set(requestId, { since: undefined, generation, sections: 0 });
    if (token === undefined || !fresh) return;
    if (token <= truth.lastToken) this.#report(`${key}: token ${token} was drawn after ${truth.lastToken}`);
    truth.lastToken = token;
  }

  queued(key: string, requestId: string): void {
    this.#of(key).places.add(requestId);
    this.#waitFor.set(requestId, key);
    this.#gone.delete(requestId);
  }

  offered(requestId: string): void {
    const key = this.#waitFor.get(requestId);
    if (key === undefined) return this.#report(`${requestId} was offered a key, and never waited for one`);
    if (this.#gone.has(requestId)) this.#report(`${requestId} was offered ${key}, and has left`);
    const truth = this.#of(key);
    this.#serve(key, truth, requestId);
    truth.holder = undefined;
    truth.claimant = { requestId, expiresAt: this.#now() + CLAIM_LASTS_MS };
  }

  renewed(key: string, requestId: string, lockTimeMs: number): void {
    const { holder } = this.#of(key);
    if (holder?.requestId === requestId) holder.expiresAt = this.#now() + lockTimeMs;
  }

  /** No longer waits, or holds: it is to be offered nothing more. */
  left(key: string, requestId: string): void {
    this.#gone.add(requestId);
    this.gaveBack(key, requestId);
  }

  /** The key is free, unless somebody else has it already. */
  gaveBack(key: string, requestId: string): void {
    const truth = this.#of(key);
    truth.places.delete(requestId);
    if (truth.claimant?.requestId === requestId) truth.claimant = undefined;
    else if (truth.holder?.requestId === requestId) truth.holder = undefined;
    else return;
    truth.freeSince = this.#now();
  }

  /** The server forgets, but nobody else does: tokens must rise all the same. */
  forget(): void {
    this.generation += 1;
    for (const truth of this.#keys.values()) {
      truth.holder = undefined;
      truth.claimant = undefined;
      truth.freeSince = this.#now();
      truth.places.clear();
    }
  }

  /** A key goes to the first who waits for it, or, where nobody waits, to anybody. */
  #serve(key: string, { places }: KeyTruth, requestId: string): void {
    const [first] = places;
    if (this.#isCalm && first !== undefined && first !== requestId)
      this.#report(`${key} went to ${requestId} before ${first}, which came first to the queue`);
    places.delete(requestId);
  }

  #live<T extends { readonly expiresAt: number }>(stay: T | undefined): T | undefined {
    return stay !== undefined && this.#now() < stay.expiresAt ? stay : undefined;
  }

  #of(key: string): KeyTruth {
    let truth = this.#keys.get(key);
    if (truth === undefined) {
      truth = {
        holder: undefined,
        claimant: undefined,
        freeSince: this.#now(),
        places: new Set(),
        lastToken: 0,
      };
      this.#keys.set(key, truth);
    }
    return truth;
  }
}
