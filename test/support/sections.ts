/**
 * What one body did under one lock, in milliseconds on the one monotonic clock of the machine:
 * `process.hrtime` is CLOCK_MONOTONIC on Linux, and so is the same in every process.
 */
export interface Section {
  /** Whose it was, for people. */
  readonly name: string;
  readonly enteredAt: number;
  /** When the body ended, or its process was killed. */
  readonly leftAt: number;
  /** Until when the holder had, at any moment of the body, reason to believe that the lock was its own. */
  readonly believedUntil: number;
  /** When its signal fired. */
  readonly toldAt?: number | undefined;
  /** That the holder, once the lock was over, came to its next tick and its signal had still not fired. */
  readonly wasLeftInTheDark?: boolean;
  readonly fencingToken?: number | undefined;
}

export interface Verdict {
  readonly sections: number;
  /** Pairs of bodies that were in at the same time. */
  readonly overlaps: number;
  /** Those where the earlier one's signal had fired already when the later one entered. */
  readonly foretold: number;
  /** The others whose earlier one stood still, and knew by its own clock that it was over as soon as it woke. */
  readonly noticedOnWaking: number;
  /** Those where two believed at one time that the lock was theirs, or one was not told: there must be none. */
  readonly unannounced: readonly string[];
  /** Those who came later with a smaller fencing token: there must be none. */
  readonly tokensThatFell: readonly string[];
}

/** Whether mutual exclusion was kept. */
export function judge(sections: readonly Section[]): Verdict {
  const inOrder = sections.toSorted((a, b) => a.enteredAt - b.enteredAt);
  const pairs = inOrder.flatMap((earlier, index) => {
    const laters: { earlier: Section; later: Section }[] = [];
    // Not to the first that does not overlap: the earlier one may be in for longer than several later ones.
    for (const later of inOrder.slice(index + 1)) {
      if (later.enteredAt >= earlier.leftAt) break;
      laters.push({ earlier, later });
    }
    return laters;
  });
  const unannounced = pairs.filter(
    ({ earlier, later }) => earlier.believedUntil > later.enteredAt || earlier.wasLeftInTheDark === true,
  );
  const announced = pairs.filter((pair) => !unannounced.includes(pair));
  const foretold = announced.filter(({ earlier, later }) => (earlier.toldAt ?? Infinity) <= later.enteredAt);
  return {
    sections: sections.length,
    overlaps: pairs.length,
    foretold: foretold.length,
    noticedOnWaking: announced.length - foretold.length,
    unannounced: unannounced.map(({ earlier, later }) => `${describe(earlier)} and ${describe(later)}`),
    tokensThatFell: inOrder.flatMap((later, index) => {
      const before = inOrder[index - 1];
      if (before === undefined || (before.fencingToken ?? -1) < (later.fencingToken ?? Infinity)) return [];
      return [`${before.fencingToken} of ${before.name}, then ${later.fencingToken} of ${later.name}`];
    }),
  };
}

function describe({ name, enteredAt, leftAt, believedUntil, toldAt }: Section): string {
  const times = [enteredAt, leftAt, believedUntil, toldAt ?? NaN].map((time) => time.toFixed(2));
  return `${name} in ${times[0]}..${times[1]}, sure until ${times[2]}, told at ${times[3]}`;
}
