import type { Compiler } from "../../hosts/ts-patch/compiler";
import { nearestOrAll } from "../../text/did-you-mean";
import { shortPath } from "../../verify/outputs";
import { positionIn } from "../../verify/position";
import type { Project, WovenSource } from "../../verify/project";
import { UsageError } from "../../terminal/usage-error";
import { onItsLines } from "../../terminal/escape";
import {
  bold,
  cyan,
  isTerminal,
  padded,
  print,
  printError,
  red,
  safe,
  terminalSize,
  type SafeText,
} from "../../terminal/printer";
import { problemLine } from "../rows/lines";
import { inOrder, problemsOf } from "../rows/tags";
import { sourcesOf } from "./eject";
import { parsed, wovenBodies, wovenText } from "./written-out";

/** A function before and after the weave. */
interface Pair {
  readonly name: string;
  readonly place: string;
  readonly written: readonly string[];
  readonly woven: readonly string[];
}

/**
 * Shows tagged functions before and after the weave, side by side. Reports wrong tags, because their functions have no lock to show.
 *
 * @param wanted the name of a function, such as `OrderService.pay` or `pay`. Without it, shows all functions.
 * @returns the exit code
 * @throws {UsageError} if there is no such function
 */
export function diff(projects: readonly Project[], wanted: string | undefined, cwd: string): number {
  const files = new Map<string, Pair[]>();
  for (const project of projects) {
    for (const source of sourcesOf(project)) {
      if (!files.has(source.fileName))
        files.set(source.fileName, pairsIn(project.ts as Compiler, source, cwd));
    }
  }
  const all = [...files.values()].flat();
  const problems = inOrder(problemsOf(projects));
  const reports = problems.map((row) => problemLine(row, cwd));
  if (all.length === 0) {
    if (problems.length === 0) throw new UsageError("This project has no tags.");
    printError(...reports);
    return 1;
  }
  const selected = all.filter(
    ({ name }) => wanted === undefined || name === wanted || name.endsWith(`.${wanted}`),
  );
  if (selected.length === 0) {
    printError(...reports);
    const names = [...new Set(all.map(({ name }) => name))];
    throw new UsageError(
      `No function with a valid tag has the name \`${wanted ?? ""}\`.${nearestOrAll(wanted ?? "", names)}`,
    );
  }
  for (const [index, pair] of selected.entries()) {
    if (index > 0) print(safe``);
    print(...sideBySide(pair));
  }
  printError(...reports);
  return problems.length === 0 ? 0 : 1;
}

function pairsIn(ts: Compiler, source: WovenSource, cwd: string): Pair[] {
  const { fileName, text, woven } = source;
  const { file } = parsed(ts, fileName, text);
  const lockedText = wovenText(ts, source);
  const bodies = wovenBodies(parsed(ts, fileName, lockedText));
  const sites = woven.sites.toSorted((a, b) => a.start - b.start);
  return sites.flatMap(({ name, start, plan }, index): Pair[] => {
    const body = bodies[index];
    if (body === undefined) return [];
    const { line, column } = positionIn(file, start);
    return [
      {
        name,
        place: `${shortPath(fileName, cwd)}:${line}:${column}`,
        written: linesFrom(text, start, plan.fn.end),
        woven: linesFrom(lockedText, lockedText.lastIndexOf("@redisLock", body.pos), body.end),
      },
    ];
  });
}

/** Returns the lines from the start of the doc comment to `end`, without their common indentation. */
function linesFrom(text: string, tag: number, end: number): string[] {
  const comment = text.lastIndexOf("/**", tag);
  const lines = onItsLines(text.slice(text.lastIndexOf("\n", comment) + 1, end)).split("\n");
  const indents = lines
    .filter((line) => line.trim() !== "")
    .map((line) => line.length - line.trimStart().length);
  const common = Math.min(...indents);
  return lines.map((line) => line.slice(common));
}

// ---- side by side ---------------------------------------------------------------------------------------

const WIDEST = 160;
const NARROWEST_COLUMN = 20;

function sideBySide({ name, place, written, woven }: Pair): SafeText[] {
  const width = isTerminal() ? terminalSize().columns : WIDEST;
  const longest = Math.max(...written.map(({ length }) => length));
  const half = Math.floor((width - 3) / 2);
  const left = Math.max(NARROWEST_COLUMN, Math.min(longest, half));
  const right = Math.max(NARROWEST_COLUMN, width - 3 - left);
  const rows = aligned(written, woven).flatMap(([before, after]) => {
    const mark = before === undefined ? ">" : after === undefined ? "<" : " ";
    const [befores, afters] = [wrapped(before ?? "", left), wrapped(after ?? "", right)];
    return Array.from({ length: Math.max(befores.length, afters.length) }, (_, index) => {
      const one = padded(befores[index] ?? "", left);
      const other = afters[index] ?? "";
      return safe`${mark === "<" ? red(one) : one} ${mark} ${mark === ">" ? cyan(other) : other}`;
    });
  });
  return [bold(`${place}: ${name}`), ...rows];
}

function wrapped(line: string, width: number): string[] {
  const pieces: string[] = [];
  for (let rest = line; pieces.length === 0 || rest !== ""; rest = rest.slice(width))
    pieces.push(rest.slice(0, width));
  return pieces;
}

type Row = readonly [before: string | undefined, after: string | undefined];

/**
 * Returns the text by which two lines are compared: without indentation, if the line contains a letter. A line such as `}` also has to
 * match in its indentation.
 */
function comparableText(line: string | undefined): string | undefined {
  const words = line?.trim().replace(/\breturn await\b/, "return");
  return words !== undefined && /\p{L}/u.test(words) ? words : line;
}

/** Aligns the lines by their longest common subsequence. */
function aligned(written: readonly string[], woven: readonly string[]): Row[] {
  const isSame = (one: number, other: number): boolean =>
    comparableText(written[one]) === comparableText(woven[other]);
  const common = Array.from({ length: written.length + 1 }, () => woven.map(() => 0));
  const at = (one: number, other: number): number => common[one]?.[other] ?? 0;
  for (let one = written.length - 1; one >= 0; one -= 1) {
    for (let other = woven.length - 1; other >= 0; other -= 1) {
      const row = common[one];
      if (row === undefined) continue;
      row[other] = isSame(one, other)
        ? at(one + 1, other + 1) + 1
        : Math.max(at(one + 1, other), at(one, other + 1));
    }
  }
  const rows: Row[] = [];
  for (let one = 0, other = 0; one < written.length || other < woven.length;) {
    if (one < written.length && other < woven.length && isSame(one, other)) {
      rows.push([written[one++], woven[other++]]);
    } else if (other >= woven.length || (one < written.length && at(one + 1, other) >= at(one, other + 1))) {
      rows.push([written[one++], undefined]);
    } else {
      rows.push([undefined, woven[other++]]);
    }
  }
  return rows;
}
