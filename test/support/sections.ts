/**
 * What one body did under one lock. Times are in milliseconds on the machine's monotonic clock. On Linux,
 * `process.hrtime` reads CLOCK_MONOTONIC, which is the same in every process.
 */
export interface Section {
  /** The name of the process and the body, for messages. */
  readonly name: string;
  readonly enteredAt: number;
  /** The time when the body ended or its process was killed. */
  readonly leftAt: number;
  /** The latest time until which the holder could believe that it held the lock. */
  readonly believedUntil: number;
  /** The time when its signal aborted. */
  readonly signaledAt?: number | undefined;
  /** Whether the holder reached its next tick after the lock had ended, and its signal had still not aborted. */
  readonly missedSignal?: boolean;
  readonly fencingToken?: number | undefined;
}

export interface Verdict {
  readonly sections: number;
  /** The number of pairs of bodies that ran at the same time. */
  readonly overlaps: number;
  /** The overlaps in which the earlier signal had aborted before the later body started. */
  readonly signaledBefore: number;
  /** The overlaps in which the earlier process was stopped, and noticed by its own clock when it woke that the lock had ended. */
  readonly noticedOnWaking: number;
  /** The overlaps in which both holders believed they held the lock, or one got no signal. There must be none. */
  readonly unannounced: readonly string[];
  /** The bodies that started later with a smaller fencing token. There must be none. */
  readonly fallenTokens: readonly string[];
}

/** Whether mutual exclusion was kept. */
export function judge(sections: readonly Section[]): Verdict {
  const inOrder = sections.toSorted((a, b) => a.enteredAt - b.enteredAt);
  const pairs = inOrder.flatMap((earlier, index) => {
    const laters: { earlier: Section; later: Section }[] = [];
    // The earlier body may overlap with several later ones.
    for (const later of inOrder.slice(index + 1)) {
      if (later.enteredAt >= earlier.leftAt) break;
      laters.push({ earlier, later });
    }
    return laters;
  });
  const unannounced = pairs.filter(
    ({ earlier, later }) => earlier.believedUntil > later.enteredAt || earlier.missedSignal === true,
  );
  const announced = pairs.filter((pair) => !unannounced.includes(pair));
  const signaledBefore = announced.filter(
    ({ earlier, later }) => (earlier.signaledAt ?? Infinity) <= later.enteredAt,
  );
  return {
    sections: sections.length,
    overlaps: pairs.length,
    signaledBefore: signaledBefore.length,
    noticedOnWaking: announced.length - signaledBefore.length,
    unannounced: unannounced.map(({ earlier, later }) => `${describe(earlier)} and ${describe(later)}`),
    fallenTokens: inOrder.flatMap((later, index) => {
      const before = inOrder[index - 1];
      if (before === undefined || (before.fencingToken ?? -1) < (later.fencingToken ?? Infinity)) return [];
      return [`${before.fencingToken} of ${before.name}, then ${later.fencingToken} of ${later.name}`];
    }),
  };
}

function describe({ name, enteredAt, leftAt, believedUntil, signaledAt }: Section): string {
  const times = [enteredAt, leftAt, believedUntil, signaledAt ?? NaN].map((time) => time.toFixed(2));
  return `${name} in ${times[0]}..${times[1]}, sure until ${times[2]}, signaled at ${times[3]}`;
}
