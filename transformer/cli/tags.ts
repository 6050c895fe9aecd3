import { readFileSync } from "node:fs";
import { lockKey } from "../../runtime/key";
import { DEFAULT_STORE } from "../../runtime/limits";
import type { KeyPart } from "../read/key";
import { mayConfigure } from "../read/lockweave-calls";
import { siteOptions } from "../read/site-options";
import { configuredStores } from "../read/stores";
import { problem } from "../text/problems";
import { placeIn, placeOf, type Place } from "../verify/place";
import type { PlacedProblem, Project, TaggedFile } from "../verify/project";
import type { WovenSite } from "../weave/weave";

/** A tag, as `lockweave list` tells it. */
export interface TagRow extends Place {
  readonly function: string;
  /** `LOCK_payOrder_{orderNo}` */
  readonly key: string;
  /** What the tag and the project's defaults say; for all else the runtime's defaults hold. */
  readonly options: Readonly<Record<string, unknown>>;
}

export interface ProblemRow extends Partial<Place> {
  readonly code: string;
  readonly message: string;
}

/** Every tag of the projects once, and all that is wrong with them. */
export function tagsOf(projects: readonly Project[]): { tags: TagRow[]; problems: ProblemRow[] } {
  const tags = projects.flatMap(({ files }) =>
    files.flatMap((file) => file.sites.map((site) => rowOf(file, site))),
  );
  return { tags: onceEach(tags), problems: inOrder(problemsOf(projects)) };
}

export function problemsOf(projects: readonly Project[]): ProblemRow[] {
  const rows = projects.flatMap(({ config, files, problems }): ProblemRow[] => [
    ...problems.map(({ code, message }) => ({ file: config, code, message })),
    ...files.flatMap((file) =>
      file.problems.map((found) => ({ ...placeOf(file, found), code: found.code, message: found.message })),
    ),
  ]);
  return onceEach(rows);
}

/** What is likely to be a mistake. */
export function warningsOf(projects: readonly Project[]): ProblemRow[] {
  const files = projects.flatMap((project) => project.files);
  return onceEach(
    files.flatMap((file) =>
      file.warnings.map((found) => ({ ...placeOf(file, found), code: found.code, message: found.message })),
    ),
  );
}

/** Tags that name a store which no source gives to `configure()`, as far as the sources say what they give. */
export function storeWarnings(projects: readonly Project[]): ProblemRow[] {
  const given = storesGiven(projects);
  if (given === undefined) return [];
  const names = [DEFAULT_STORE, ...given];
  const there = names.map((name) => `\`${name}\``).join(", ");
  return onceEach(
    projects.flatMap(({ files }) =>
      files.flatMap((file) =>
        file.sites.flatMap(({ start, plan: { store } }) => {
          if (store === undefined || names.includes(store)) return [];
          const { code, message } = problem("unknownStore", { start, end: start }, store, there);
          return [{ ...placeIn(file.source, start), code, message }];
        }),
      ),
    ),
  );
}

/** `undefined` where no source configures anything, or one does so in a way that cannot be read. */
function storesGiven(projects: readonly Project[]): ReadonlySet<string> | undefined {
  const calls = projects.flatMap(({ ts, config, sources }) =>
    sources.flatMap((path) => {
      const text = path === config ? "" : readFileSync(path, "utf8");
      if (!mayConfigure(text)) return [];
      return configuredStores(ts, ts.createSourceFile(path, text, ts.ScriptTarget.Latest));
    }),
  );
  if (calls.length === 0 || !calls.every((names) => names !== undefined)) return undefined;
  return new Set(calls.flat());
}

/** By file, line and column. */
export function inOrder<R extends Partial<Place>>(rows: readonly R[]): R[] {
  const files = [...new Set(rows.map(({ file = "" }) => file))].toSorted();
  return rows.toSorted(
    (a, b) =>
      files.indexOf(a.file ?? "") - files.indexOf(b.file ?? "") ||
      (a.line ?? 0) - (b.line ?? 0) ||
      (a.column ?? 0) - (b.column ?? 0),
  );
}

/** What the projects take in from builds that ignored the weave, or by what was never built. */
export function dependencyProblems(projects: readonly Project[], isBundled: boolean): ProblemRow[] {
  return onceEach(
    projects.flatMap(({ config, unlocked, unlockedSources }) =>
      // What is bundled is held against the bundle.
      [...unlocked(), ...(isBundled ? [] : unlockedSources())].map((one) => placedRow(config, one)),
    ),
  );
}

/** What a type checker says of the tags. */
export function typeProblems(projects: readonly Project[]): ProblemRow[] {
  const rows = projects.flatMap((project) =>
    project.typeProblems().map((one) => placedRow(project.config, one)),
  );
  return onceEach(rows);
}

function placedRow(config: string, { file, problem: { code, message, start } }: PlacedProblem): ProblemRow {
  return Object.assign(file === undefined ? { file: config } : placeIn(file, start), { code, message });
}

/** A file may belong to several projects. */
export function onceEach<R extends Partial<Place>>(rows: readonly R[]): R[] {
  return [...new Map(rows.map((row) => [JSON.stringify(row), row])).values()];
}

function rowOf(file: TaggedFile, site: WovenSite): TagRow {
  const { plan } = site;
  const { site: name, businessFlag, ...options } = siteOptions(plan);
  const { failure } = plan.onFailure;
  return {
    ...placeOf(file, site),
    function: String(name),
    key: plan.wholeKey?.shown ?? keyOf(String(businessFlag), plan.key, options["each"] === true),
    options: {
      ...options,
      ...(failure && { onFailure: failure.code }),
      ...(plan.when && { when: plan.when.code }),
    },
  };
}

function keyOf(flag: string, parts: readonly KeyPart[], isOfEach: boolean): string {
  const fixed = lockKey(flag);
  if (isOfEach) return parts.map(({ shown }) => `${fixed}_{${shown}}`).join(" ");
  return parts.length === 0 ? fixed : `${fixed}_${parts.map(({ shown }) => `{${shown}}`).join()}`;
}
