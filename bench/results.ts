import type { ContestantName } from "./contestants";
import { quartiles, type Quartiles } from "./quantiles";
import type { Figure, Scenario } from "./scenarios/scenario";

/** The results of a benchmark, in the format of `results/latest.json`. */
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
  /** One value for each round. */
  readonly values: readonly number[];
  readonly value: Quartiles;
  /** The ratio to the value of raw in the same round, so that a slow round does not matter. */
  readonly ratio: Quartiles;
}

/** The figures of each contestant in one scenario, with one record for each round. */
export type Rounds = ReadonlyMap<ContestantName, readonly Readonly<Record<string, number>>[]>;

export function scenarioResult(
  scenario: Pick<Scenario, "name" | "title" | "figures">,
  rounds: Rounds,
): ScenarioResult {
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

/** Rounds a value to the digits that are significant, to keep the file short. */
function short(value: number): number {
  return Number(value.toPrecision(5));
}
