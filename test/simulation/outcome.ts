/** The result of one world. */
export interface Outcome {
  readonly seed: number;
  readonly weather: string;
  readonly problems: readonly string[];
  readonly counts: Counts;
  /** The same to the last digit for the same seed. */
  readonly endedAt: number;
}

export interface Counts {
  served: number;
  turnedAway: number;
  crashes: number;
  freezes: number;
  restarts: number;
  breaks: number;
}

export const noCounts = (): Counts => ({
  served: 0,
  turnedAway: 0,
  crashes: 0,
  freezes: 0,
  restarts: 0,
  breaks: 0,
});

export function add(sum: Counts, more: Counts): void {
  for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] += more[name];
}
