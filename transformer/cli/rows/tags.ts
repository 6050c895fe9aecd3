import { readFileSync } from "node:fs";
import { DEFAULT_STORE } from "../../../runtime/base/limits";
import { mayConfigure } from "../../read/spelling";
import type { NeedPlan } from "../../read/need";
import { shownKey } from "../../read/shown-key";
import { siteOptions } from "../../read/site-options";
import { configuredStores } from "../../read/stores";
import { problem } from "../../text/problems";
import { positionIn, positionOf, type Position } from "../../verify/position";
import type { PlacedProblem, Project, TaggedFile } from "../../verify/project";
import type { WovenSite } from "../../weave/weave";

/** A tag in the output of `lockweave list`. */
export interface TagRow extends Position {
  readonly function: string;
  /** A pattern such as `LOCK_payOrder_{orderNo}`. */
  readonly key: string;
  /** Set for a `@needsLock`: its callers hold the lock. */
  readonly isNeeded?: true;
  /** The options from the tag and from the project's defaults. All other options have the runtime's defaults. */
  readonly options: Readonly<Record<string, unknown>>;
}

export interface ProblemRow extends Partial<Position> {
  readonly code: string;
  readonly message: string;
}

/** Returns an option as a tag writes it: `lockTime=20s`. */
export function optionText([name, value]: readonly [string, unknown]): string {
  return `${name}=${String(value)}`;
}

/** Returns every tag of the projects once, and all problems. */
export function tagsOf(projects: readonly Project[]): { tags: TagRow[]; problems: ProblemRow[] } {
  const tags = projects.flatMap(({ files }) =>
    files.flatMap((file) =>
      [
        ...file.sites.map((site) => rowOf(file, site)),
        ...file.needs.map((need) => rowOfNeed(file, need)),
      ].toSorted((a, b) => a.line - b.line || a.column - b.column),
    ),
  );
  return { tags: onceEach(tags), problems: inOrder(problemsOf(projects)) };
}

export function problemsOf(projects: readonly Project[]): ProblemRow[] {
  const rows = projects.flatMap(({ config, files, problems }): ProblemRow[] => [
    ...problems.map(({ code, message }) => ({ file: config, code, message })),
    ...files.flatMap((file) =>
      file.problems.map((found) => ({
        ...positionOf(file, found),
        code: found.code,
        message: found.message,
      })),
    ),
  ]);
  return onceEach(rows);
}

/** Returns warnings about likely mistakes in tags. */
export function warningsOf(projects: readonly Project[]): ProblemRow[] {
  const files = projects.flatMap((project) => project.files);
  return onceEach(
    files.flatMap((file) =>
      file.warnings.map((found) => ({
        ...positionOf(file, found),
        code: found.code,
        message: found.message,
      })),
    ),
  );
}

/** Reports tags that name a store that no source passes to `configure()`. Reports nothing if a call cannot be analyzed. */
export function storeWarnings(projects: readonly Project[]): ProblemRow[] {
  const configured = configuredNames(projects);
  if (configured === undefined) return [];
  const names = [DEFAULT_STORE, ...configured];
  const known = names.map((name) => `\`${name}\``).join(", ");
  return onceEach(
    projects.flatMap(({ files }) =>
      files.flatMap((file) =>
        file.sites.flatMap(({ start, plan: { store } }) => {
          if (store === undefined || names.includes(store)) return [];
          const { code, message } = problem("unknownStore", { start, end: start }, store, known);
          return [{ ...positionIn(file.source, start), code, message }];
        }),
      ),
    ),
  );
}

/** Returns the configured store names. `undefined` if no source calls `configure()`, or if the stores of a call cannot be read. */
function configuredNames(projects: readonly Project[]): ReadonlySet<string> | undefined {
  const calls = projects.flatMap(({ ts, config, sources }) =>
    sources.flatMap((path) => {
      const text = path === config ? "" : readFileSync(path, "utf8");
      if (!mayConfigure(text)) return [];
      return configuredStores({ ts, file: ts.createSourceFile(path, text, ts.ScriptTarget.Latest) });
    }),
  );
  if (calls.length === 0 || !calls.every((names) => names !== undefined)) return undefined;
  return new Set(calls.flat());
}

/** Sorts rows by file, line, and column. */
export function inOrder<R extends Partial<Position>>(rows: readonly R[]): R[] {
  const files = [...new Set(rows.map(({ file = "" }) => file))].toSorted();
  return rows.toSorted(
    (a, b) =>
      files.indexOf(a.file ?? "") - files.indexOf(b.file ?? "") ||
      (a.line ?? 0) - (b.line ?? 0) ||
      (a.column ?? 0) - (b.column ?? 0),
  );
}

/** Reports dependencies that were built without the weave, and imported sources that no build writes. */
export function dependencyProblems(projects: readonly Project[], isBundled: boolean): ProblemRow[] {
  return onceEach(
    projects.flatMap(({ config, unlocked, unlockedSources }) =>
      // For a bundle, the check of the bundle itself covers the imported sources.
      [...unlocked(), ...(isBundled ? [] : unlockedSources())].map((one) => placedRow(config, one)),
    ),
  );
}

/** Returns the type checker's problems in tags. */
export function typeProblems(projects: readonly Project[]): ProblemRow[] {
  const rows = projects.flatMap((project) =>
    project.typeProblems().map((one) => placedRow(project.config, one)),
  );
  return onceEach(rows);
}

function placedRow(config: string, { file, problem: { code, message, start } }: PlacedProblem): ProblemRow {
  return Object.assign(file === undefined ? { file: config } : positionIn(file, start), { code, message });
}

/** Removes duplicates. A file may belong to several projects. */
export function onceEach<R extends Partial<Position>>(rows: readonly R[]): R[] {
  return [...new Map(rows.map((row) => [JSON.stringify(row), row])).values()];
}

function rowOfNeed(file: TaggedFile, need: NeedPlan): TagRow {
  const { site: name, businessFlag: _, ...options } = siteOptions(need);
  return {
    ...positionOf(file, need.at),
    function: String(name),
    key: shownKey(need),
    isNeeded: true,
    options,
  };
}

function rowOf(file: TaggedFile, site: WovenSite): TagRow {
  const { plan } = site;
  const { site: name, businessFlag: _, ...options } = siteOptions(plan);
  const { failure, value } = plan.onFailure;
  return {
    ...positionOf(file, site),
    function: String(name),
    key: shownKey(plan),
    options: {
      ...options,
      ...(failure && { onFailure: failure.code }),
      ...(plan.when && { when: plan.when.code }),
      ...(value && { skipValue: value.code }),
      ...Object.fromEntries(plan.expressions.map((one) => [one.name, one.shown])),
    },
  };
}
