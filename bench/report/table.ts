import { CONTESTANTS, type ContestantName } from "../contestants";
import type { Quartiles } from "../quantiles";
import type { FigureResult, Results, Score } from "../results";

/** Formats all figures as a Markdown table that is also readable as text, with medians, and quartiles in parentheses. */
export function fullTable(results: Results): string {
  return table(results, (figure, score) => {
    if (figure.show === "value") return withQuartiles(score.value, (value) => number(value, figure.unit));
    const ratio = withQuartiles(score.ratio, (value) => `${number(value, "")} x`);
    return score.contestant === "raw" ? number(score.value.median, figure.unit) : ratio;
  });
}

/** Formats all figures as a Markdown table with medians only. */
export function shortTable(results: Results): string {
  return table(results, (figure, { contestant, value, ratio }) =>
    figure.show === "value" || contestant === "raw"
      ? number(value.median, figure.unit)
      : `${number(ratio.median, "")} x`,
  );
}

export function number(value: number, unit: string): string {
  if (!Number.isFinite(value)) return "-";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  const text = value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return unit === "" || unit === "/s" || unit === "%" ? `${text}${unit}` : `${text} ${unit}`;
}

function withQuartiles({ low, median, high }: Quartiles, format: (value: number) => string): string {
  return `${format(median)} (${number(low, "")} to ${number(high, "")})`;
}

function table(results: Results, cell: (figure: FigureResult, score: Score) => string): string {
  const contestants = CONTESTANTS.filter((contestant) =>
    results.scenarios.some(({ figures }) =>
      figures.some((figure) => scoreOf(figure, contestant) !== undefined),
    ),
  );
  const rows = results.scenarios.flatMap(({ title, figures }) =>
    figures.map((figure, nth) => [
      nth === 0 ? title : "",
      figure.title,
      ...contestants.map((contestant) => {
        const score = scoreOf(figure, contestant);
        return score === undefined ? "" : cell(figure, score);
      }),
    ]),
  );
  return markdown([["", "", ...contestants], ...rows]);
}

function scoreOf(figure: FigureResult, contestant: ContestantName): Score | undefined {
  return figure.contestants.find((score) => score.contestant === contestant);
}

function markdown([head = [], ...rows]: string[][]): string {
  const widths = head.map((_, column) =>
    Math.max(3, ...[head, ...rows].map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: string[]): string =>
    `| ${cells.map((text, column) => text.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
