import { CONTESTANTS, type ContestantName } from "../contestants";
import type { Quartiles } from "../quantiles";
import type { FigureResult, Results, Score } from "../results";
import { GROWTH_CLIENTS } from "../scenarios/growth";
import { number } from "./table";

/**
 * Draws the headline figures as one SVG: bars for each contestant, and below them lines that show how the cost of waiting grows with the
 * number of clients. It has no background, and its colors are readable on white and on black.
 */
export function plot(results: Results): string {
  const bars = BAR_PANELS.map(({ title, scenario, figure }, index) => {
    const [x, y] = [
      (index % COLUMNS) * (PANEL_WIDTH + GAP),
      Math.floor(index / COLUMNS) * (BARS_HEIGHT + GAP),
    ];
    return at(x, y, barPanel(title, find(results, scenario, figure)));
  });
  const linesTop = Math.ceil(BAR_PANELS.length / COLUMNS) * (BARS_HEIGHT + GAP);
  const lines = LINE_PANELS.map(({ title, figure }, index) => {
    const figures = GROWTH_CLIENTS.map((clients) => find(results, "growth", `${figure}${clients}`));
    return at(index * (LINES_WIDTH + GAP), linesTop, linePanel(title, figures));
  });
  const height = linesTop + LINES_HEIGHT;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${-MARGIN} ${-MARGIN} ${WIDTH + 2 * MARGIN} ${height + 2 * MARGIN}" width="${WIDTH + 2 * MARGIN}" role="img" aria-label="lockweave and its peers, side by side">
<style>
  text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: ${INK}; }
  .title { font-size: 13px; font-weight: 600; }
  .note { font-size: 11px; }
  .ours { font-weight: 700; fill: ${COLOURS.lockweave}; }
</style>
${[...bars, ...lines].join("\n")}
</svg>
`;
}

const WIDTH = 960;
const MARGIN = 16;
const GAP = 28;
const COLUMNS = 2;
const PANEL_WIDTH = (WIDTH - (COLUMNS - 1) * GAP) / COLUMNS;
const LABEL_WIDTH = 116;
const VALUE_WIDTH = 84;
const BAR_HEIGHT = 14;
const BAR_STEP = 21;
const TITLE_HEIGHT = 42;
/** A plot shows a whole benchmark, which has no earlier build. */
const PLOTTED = CONTESTANTS.filter((name) => name !== "before");
const BARS_HEIGHT = TITLE_HEIGHT + PLOTTED.length * BAR_STEP;
const LINES_WIDTH = PANEL_WIDTH;
const LINES_HEIGHT = 250;

const INK = "#768390";
const COLOURS: Record<ContestantName, string> = {
  raw: "#8b949e",
  lockweave: "#e36209",
  before: "#f0b37e",
  "redis-semaphore": "#3f8ae0",
  redlock: "#8a6fd8",
  "redlock-universal": "#2f9e76",
};

const BAR_PANELS = [
  { title: "1 caller, distinct keys: sections/s", scenario: "one-caller", figure: "sections" },
  { title: "1,000 callers, distinct keys: sections/s", scenario: "distinct-1000", figure: "sections" },
  { title: "64 callers, one key, one process: sections/s", scenario: "crowd", figure: "sections" },
  { title: "4 processes x 8 callers, one key: sections/s", scenario: "fleet", figure: "sections" },
  {
    title: "4 processes x 8 callers, one key: commands per section",
    scenario: "fleet",
    figure: "commands",
  },
  { title: "4 processes x 8 callers, one key: longest wait", scenario: "fleet", figure: "longestWait" },
  { title: "10,000 held locks: commands/s to renew them", scenario: "held", figure: "renewals" },
  { title: "10,000 held locks: heap per lock", scenario: "held", figure: "heap" },
] as const;

const LINE_PANELS = [
  { title: "n clients want one key: commands per hand-off", figure: "commands" },
  { title: "n clients want one key: time between two holders, ms", figure: "gap" },
] as const;

/** Draws one bar for each contestant, with a thin line across its quartiles. A figure that a table shows as a ratio is drawn as a ratio. */
function barPanel(title: string, figure: FigureResult | undefined): string {
  if (figure === undefined) return "";
  const room = PANEL_WIDTH - LABEL_WIDTH - VALUE_WIDTH;
  const quartilesOf = (score: Score): Quartiles => (figure.show === "ratio" ? score.ratio : score.value);
  const longest = Math.max(...figure.contestants.map((score) => quartilesOf(score).high));
  const length = (value: number): number => Math.max((room * value) / longest, 0);
  const bars = inReportOrder(figure).map((score, index) => {
    const { contestant } = score;
    const value = quartilesOf(score);
    const y = TITLE_HEIGHT + index * BAR_STEP;
    const middle = y + BAR_HEIGHT / 2;
    const whisker = `M${px(LABEL_WIDTH + length(value.low))} ${middle}H${px(LABEL_WIDTH + length(value.high))}`;
    const isRatio = figure.show === "ratio" && contestant !== "raw";
    const label = isRatio ? `${number(value.median, "")} x` : number(score.value.median, figure.unit);
    return [
      text(LABEL_WIDTH - 8, middle + 4, contestant, `text-anchor="end" ${emphasis(contestant)}`),
      `<rect x="${LABEL_WIDTH}" y="${y}" width="${px(Math.max(length(value.median), 1.5))}" height="${BAR_HEIGHT}" rx="2" fill="${COLOURS[contestant]}"/>`,
      `<path d="${whisker}" stroke="${INK}" stroke-width="1.5"/>`,
      text(LABEL_WIDTH + length(value.high) + 6, middle + 4, label, emphasis(contestant)),
    ].join("");
  });
  return heading(title, figure) + bars.join("\n");
}

/** Draws one line for each contestant by the number of clients. Both axes are logarithmic. */
function linePanel(title: string, figures: readonly (FigureResult | undefined)[]): string {
  const [first] = figures;
  if (first === undefined) return "";
  const names = inReportOrder(first).map(({ contestant }) => contestant);
  const series = names.map((name) => ({ name, medians: figures.map((figure) => medianOf(figure, name)) }));
  const all = series.flatMap(({ medians }) => medians).filter((value) => value > 0);
  const [bottom, top] = [Math.floor(Math.log10(Math.min(...all))), Math.ceil(Math.log10(Math.max(...all)))];
  const [left, right, up, down] = [36, LINES_WIDTH - LABEL_WIDTH, TITLE_HEIGHT + 4, LINES_HEIGHT - 26];
  const x = (nth: number): number => left + ((right - left) * nth) / (figures.length - 1);
  const y = (value: number): number =>
    down - ((down - up) * (Math.log10(Math.max(value, 10 ** bottom)) - bottom)) / Math.max(top - bottom, 1);

  const grid = Array.from({ length: top - bottom + 1 }, (_, index) => 10 ** (bottom + index)).map(
    (value) =>
      `<path d="M${left} ${px(y(value))}H${right}" stroke="${INK}" stroke-opacity=".25"/>` +
      text(left - 6, y(value) + 4, value.toLocaleString("en"), `text-anchor="end" class="note"`),
  );
  const ticks = GROWTH_CLIENTS.map((clients, nth) =>
    text(x(nth), down + 18, String(clients), `text-anchor="middle" class="note"`),
  );
  const labelY = spread(series.map(({ medians }) => y(medians.at(-1) ?? NaN)));
  const curves = series.map(({ name, medians }, index) => {
    const points = medians.map((value, nth) => `${px(x(nth))},${px(y(value))}`).join(" ");
    const dots = medians.map(
      (value, nth) => `<circle cx="${px(x(nth))}" cy="${px(y(value))}" r="3" fill="${COLOURS[name]}"/>`,
    );
    const width = name === "lockweave" ? 3 : 2;
    return [
      `<polyline points="${points}" fill="none" stroke="${COLOURS[name]}" stroke-width="${width}"/>`,
      ...dots,
      text(
        right + 8,
        (labelY[index] ?? 0) + 4,
        name,
        `style="fill:${COLOURS[name]};font-weight:${name === "lockweave" ? 700 : 400}"`,
      ),
    ].join("");
  });
  return heading(title, first) + [...grid, ...ticks, ...curves].join("\n");
}

/** Moves labels apart that would overlap, and keeps their order. */
function spread(positions: readonly number[]): number[] {
  const LINE_HEIGHT = 15;
  const moved = [...positions];
  const downwards = positions.map((_, index) => index).toSorted((a, b) => (moved[a] ?? 0) - (moved[b] ?? 0));
  // Starts at the lowest label, so that none leaves the panel.
  let limit = LINES_HEIGHT - 26;
  for (const index of downwards.toReversed()) {
    limit = Math.min(moved[index] ?? 0, limit);
    moved[index] = limit;
    limit -= LINE_HEIGHT;
  }
  return moved;
}

function heading(title: string, { better }: FigureResult): string {
  return (
    text(0, 13, title, `class="title"`) +
    text(0, 29, better === "more" ? "more is better" : "less is better", `class="note"`)
  );
}

function find(results: Results, scenario: string, figure: string): FigureResult | undefined {
  return results.scenarios.find(({ name }) => name === scenario)?.figures.find(({ name }) => name === figure);
}

function inReportOrder(figure: FigureResult): Score[] {
  return PLOTTED.flatMap((name) => figure.contestants.filter(({ contestant }) => contestant === name));
}

function medianOf(figure: FigureResult | undefined, name: ContestantName): number {
  return figure?.contestants.find(({ contestant }) => contestant === name)?.value.median ?? NaN;
}

function emphasis(contestant: ContestantName): string {
  return contestant === "lockweave" ? `class="ours"` : "";
}

function at(x: number, y: number, content: string): string {
  return `<g transform="translate(${px(x)} ${px(y)})">${content}</g>`;
}

function text(x: number, y: number, content: string, attributes = ""): string {
  return `<text x="${px(x)}" y="${px(y)}" ${attributes}>${content}</text>`;
}

function px(value: number): string {
  return value.toFixed(1);
}
