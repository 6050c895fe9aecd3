import type { ContestantName } from "../contestants";
import { Crew } from "../crew";
import type { Wire } from "../wire";

/** One situation in which all contestants are measured. */
export interface Scenario<FigureName extends string = string> {
  /** For `--only`. */
  readonly name: string;
  readonly title: string;
  readonly figures: Readonly<Record<FigureName, Figure>>;
  /** Nothing in it depends on how fast anything is: all contestants play it at once. */
  readonly atOnce?: boolean;
  /** How often all contestants play it by turns in one round, which counts the mean: once, unless it is easily disturbed. */
  readonly plays?: number;
  /** Those who can play it, if not all can. */
  readonly players?: readonly ContestantName[];
  play(stage: Stage): Promise<Readonly<Record<FigureName, number>>>;
}

/** A number that a scenario tells of a contestant. */
export interface Figure {
  readonly title: string;
  readonly unit: string;
  readonly better: "more" | "less";
  /** How a table shows it: as it is, or as a multiple of raw's. */
  readonly show: "value" | "ratio";
}

/** What a scenario finds there for one contestant. */
export interface Stage {
  readonly contestant: ContestantName;
  /** The port of Redis itself. */
  readonly redis: number;
  /** The port of Redis, by a way on which what clients send is counted. */
  readonly counting: Wire;
  /** The port of Redis, by a way on which bytes travel for 1 ms, each way. */
  readonly far: Wire;
  /** A run of so long, with this time to settle, is the usual; `--quick` shortens it. */
  readonly settlingMs: number;
  readonly durationMs: number;
  readonly quick: boolean;
  /** How many of these keys Redis has. */
  countKeys(pattern: string): Promise<number>;
}

export const LOCK_TIME_MS = 10_000;

/** New processes for the contestant, with a client each. */
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
