/** A hold that a transaction guards. */
interface Guarded {
  readonly key: string;
  readonly requestId: string;
  readonly permits: number;
  /** The protected data that it has read. */
  readonly read: string | undefined;
}

/** A command that acquired a key. */
interface Granted {
  readonly requestId: string;
  readonly permits: number;
}

/**
 * Checks the transactions that guard holds. While one is open, nobody else may acquire its key. So two transactions of different holders
 * never interleave, and a guard passes only if nobody else has acquired the key since.
 */
export class Guards {
  readonly #report: (problem: string) => void;
  readonly #open = new Map<object, Guarded[]>();
  /** All grants of each key, in order. */
  readonly #grants = new Map<string, Granted[]>();
  /** By key: who wrote the data that the lock protects last. */
  readonly #writer = new Map<string, string>();
  /** The holds that were revoked or released while no transaction guarded them. */
  readonly #over = new Set<string>();
  #commits = 0;

  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  /** Whether a transaction keeps the key closed. */
  isOpen(key: string): boolean {
    return [...this.#open.values()].some((guarded) => guarded.some((one) => one.key === key));
  }

  /** The server grants the key to a command. */
  granted(key: string, grant: Granted): void {
    for (const guarded of [...this.#open.values()].flat()) {
      if (guarded.key === key && exclude(guarded, grant))
        this.#report(
          `${key} was granted to ${grant.requestId} while a transaction guarded ${guarded.requestId}`,
        );
    }
    this.#grants.set(key, [...this.#grantsOf(key), grant]);
  }

  /** The server revokes or releases a hold. From then on, only a transaction that has guarded it before may do so again. */
  ends(requestId: string): void {
    const isGuarded = [...this.#open.values()].flat().some((one) => one.requestId === requestId);
    if (!isGuarded) this.#over.add(requestId);
  }

  /** A restart of the server has brought the hold back. */
  restored(requestId: string): void {
    this.#over.delete(requestId);
  }

  /** A guard succeeds. */
  passed(transaction: object, key: string, requestId: string): void {
    const grants = this.#grantsOf(key);
    const index = grants.findIndex((grant) => grant.requestId === requestId);
    const grant = grants[index];
    if (grant === undefined)
      return this.#report(`a guard of ${key} passed for ${requestId}, which never held it`);
    const later = grants.slice(index + 1).find((one) => exclude(grant, one));
    if (later !== undefined)
      this.#report(`a guard of ${key} passed for ${requestId}, and ${later.requestId} acquired it since`);
    if (this.#over.has(requestId)) this.#report(`a guard of ${key} passed for ${requestId}, which had ended`);
    const guarded = this.#open.get(transaction) ?? [];
    this.#open.set(transaction, [...guarded, { key, ...grant, read: this.#writer.get(key) }]);
  }

  /** A transaction ends. If it commits, it writes what depends on what it has read. */
  ended(transaction: object, isCommitted: boolean): void {
    const guarded = this.#open.get(transaction) ?? [];
    this.#open.delete(transaction);
    this.#commits += 1;
    for (const { key, requestId, permits, read } of isCommitted ? guarded : []) {
      if (permits > 1) continue;
      const writer = this.#writer.get(key);
      if (writer !== read) this.#report(`${requestId} committed over ${writer} in the data of ${key}`);
      this.#writer.set(key, `commit ${this.#commits} of ${requestId}`);
    }
  }

  #grantsOf(key: string): readonly Granted[] {
    return this.#grants.get(key) ?? [];
  }
}

/** Whether the two may not hold a key together. */
function exclude(one: Granted, other: Granted): boolean {
  if (one.requestId === other.requestId) return false;
  if (one.permits === 1 || other.permits === 1) return true;
  return (one.permits === Infinity) !== (other.permits === Infinity);
}
