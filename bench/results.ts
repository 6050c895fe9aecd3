import type { ContestantName } from "./contestants";
import { quartiles, type Quartiles } from "./quantiles";
import type { Figure, Scenario } from "./scenarios/scenario";

/** What a bench found out, as `results/latest.json` keeps it. */
export interface Results {
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly scenarios: readonly ScenarioResult[];
}

export interface ScenarioResult {
  readonly name: string;
  readonly title: string;
  readonly figures: readonly FigureResult[];
}

export interface FigureResult extends Figure {
  readonly name: string;
  readonly contestants: readonly Score[];
}

export interface Score {
  readonly contestant: ContestantName;
  /** One a round. */
  readonly values: readonly number[];
  readonly value: Quartiles;
  /** To raw's value in the same round, so that what slows down a whole round cancels out. */
  readonly ratio: Quartiles;
}

/** The figures of one contestant in one scenario, one record a round. */
export type Rounds = ReadonlyMap<ContestantName, readonly Readonly<Record<string, number>>[]>;

export function scenarioResult(scenario: Scenario, rounds: Rounds): ScenarioResult {
  const valuesOf = (contestant: ContestantName, figure: string): number[] =>
    (rounds.get(contestant) ?? []).map((figures) => figures[figure] ?? NaN);
  const figures = Object.entries(scenario.figures).map(([name, figure]) => {
    const yardstick = valuesOf("raw", name);
    const contestants = [...rounds.keys()].map((contestant) => {
      const values = valuesOf(contestant, name);
      const ratios = values.map((value, round) => value / (yardstick[round] ?? NaN));
      return { contestant, values: values.map(short), value: quartiles(values), ratio: quartiles(ratios) };
    });
    return Object.assign({ name, contestants }, figure);
  });
  return { name: scenario.name, title: scenario.title, figures };
}

/** More digits than anybody could have measured would only make the file long. */
function short(value: number): number {
  return Number(value.toPrecision(5));
}
