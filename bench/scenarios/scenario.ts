import type { ContestantName } from "../contestants";
import { Crew } from "../crew";
import type { Wire } from "../wire";

/** A situation in which all contestants are measured. */
export interface Scenario<FigureName extends string = string> {
  /** The name for `--only`. */
  readonly name: string;
  readonly title: string;
  readonly figures: Readonly<Record<FigureName, Figure>>;
  /** Whether all contestants may play it at once, because none of its results depends on speed. */
  readonly atOnce?: boolean;
  /**
   * How often all contestants play it in one round, whose result is the mean. The default is once. Scenarios that are easily disturbed need
   * more.
   */
  readonly plays?: number;
  /** The contestants that can play it. The default is all. */
  readonly players?: readonly ContestantName[];
  play(stage: Stage): Promise<Readonly<Record<FigureName, number>>>;
}

/** A number that a scenario measures for a contestant. */
export interface Figure {
  readonly title: string;
  readonly unit: string;
  readonly better: "more" | "less";
  /** How a table shows it: as a value, or as a multiple of raw's value. */
  readonly show: "value" | "ratio";
}

/** The environment of a scenario for one contestant. */
export interface Stage {
  readonly contestant: ContestantName;
  /** The port of Redis itself. */
  readonly redis: number;
  /** A proxy to Redis that counts the commands of clients. */
  readonly counting: Wire;
  /** A proxy to Redis that delays bytes by 1 ms each way. */
  readonly far: Wire;
  /** The usual time to settle, and the usual length of a run. `--quick` shortens both. */
  readonly settlingMs: number;
  readonly durationMs: number;
  readonly quick: boolean;
  /** Returns how many keys in Redis match the pattern. */
  countKeys(pattern: string): Promise<number>;
}

export const LOCK_TIME_MS = 10_000;

/** Starts new processes for the contestant, with one client each. */
export async function openCrew({ contestant, redis }: Stage, processes: number, port = redis): Promise<Crew> {
  const crew = new Crew(contestant, processes);
  try {
    await crew.open({ port, clients: processes, lockTimeMs: LOCK_TIME_MS });
    return crew;
  } catch (error) {
    await crew[Symbol.asyncDispose]();
    throw error;
  }
}
