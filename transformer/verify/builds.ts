import { isTestFile } from "../analyze/test-files";
import { countTags, proofOf, settingThatPreventsOutput, whatOf, type Proof, type Unproved } from "./check";
import { positionOf, type Position } from "./position";
import type { Project, TaggedFunction } from "./project";

/** The result of checking the output of several projects. */
export interface CheckedBuilds {
  /** The number of tags whose lock the output must contain. */
  readonly tags: number;
  readonly unproved: readonly Unproved[];
  /** The projects other than the given ones whose output was compared. */
  readonly builders: readonly Project[];
  /** All projects that have written output. */
  readonly writers: readonly Project[];
  /** The given projects that share the proof with `builders`. */
  readonly shared: readonly Project[];
  /** Tags in tests that the build leaves out. */
  readonly leftOut: readonly Position[];
  /** A project with tags that writes no code, if no other project has written any. */
  readonly silent: Project | undefined;
  /** Other projects that would write code for the tags, but have written none. */
  readonly unbuilt: readonly Project[];
  /** The output files that were compared. */
  readonly outputs: ReadonlySet<string>;
}

/**
 * Checks that the output contains the lock of every tag.
 *
 * A tsconfig.json often covers more than the build does, such as the tests, and a package may have several builds. So this looks for other
 * projects that have written output. Every project with output must contain the locks of all its tags. Only a tag in a test file may be in
 * no output, and only if a project with output leaves that file out.
 *
 * @param alternativesOf returns other projects that may compile the same files
 */
export function checkBuilds(
  projects: readonly Project[],
  alternativesOf: (project: Project) => readonly Project[],
  cwd: string,
): CheckedBuilds {
  const proofs = new Map<string, Proof>();
  const proof = (project: Project): Proof => {
    const known = proofs.get(project.config) ?? proofOf(project, cwd);
    proofs.set(project.config, known);
    return known;
  };
  const all = projects.map((project) => checkBuild(project, alternativesOf, proof));
  const builders = distinct(all.flatMap((one) => one.builders)).filter(
    ({ config }) => !projects.some((project) => project.config === config),
  );
  const unproved = distinct(all.flatMap((one) => one.unproved));
  const leftOut = distinct(all.flatMap((one) => one.leftOut)).filter(
    (place) => !unproved.some((one) => isSamePosition(one, place)),
  );
  return {
    tags: countTags([...projects, ...builders]) - leftOut.length,
    unproved,
    builders,
    writers: [...projects, ...builders].filter(
      (one) => settingThatPreventsOutput(one) === undefined && proof(one).hasOutput,
    ),
    shared: projects.filter((_, index) => all[index]?.builders.length !== 0),
    leftOut,
    silent: projects.find((_, index) => all[index]?.isSilent === true),
    unbuilt: distinct(all.flatMap((one) => one.unbuilt)),
    outputs: new Set([...proofs.values()].flatMap(({ outputs }) => Array.from(outputs))),
  };
}

interface CheckedBuild {
  readonly unproved: readonly Unproved[];
  readonly builders: readonly Project[];
  readonly leftOut: readonly Position[];
  readonly unbuilt: readonly Project[];
  readonly isSilent: boolean;
}

function checkBuild(
  project: Project,
  alternativesOf: (project: Project) => readonly Project[],
  proof: (project: Project) => Proof,
): CheckedBuild {
  const writes = settingThatPreventsOutput(project) === undefined;
  const own = writes ? proof(project) : undefined;
  const ownResult = { unproved: own?.unproved ?? [], builders: [], leftOut: [], unbuilt: [] };
  if (countTags([project]) === 0) return { ...ownResult, isSilent: false };
  const others = alternativesOf(project).filter(
    (other) => other.config !== project.config && settingThatPreventsOutput(other) === undefined,
  );
  const builders = others.filter((other) => proof(other).hasOutput);
  if (builders.length === 0) return { ...ownResult, unbuilt: others, isSilent: !writes };
  const writers = own?.hasOutput === true ? [project, ...builders] : builders;
  const leftOut: Position[] = [];
  const unproved: Unproved[] = [];
  const isProvedBy = (other: Project, place: Position): boolean =>
    !proof(other).unproved.some((one) => isSamePosition(one, place));
  const isTest = (file: string): boolean => isTestFile(file, project.config);
  for (const writer of writers) {
    // These compile all files of the writer, except perhaps its tests.
    const untested = writers.filter((other) =>
      writer.files.every(({ source: { fileName } }) => isTest(fileName) || compiles(other, fileName)),
    );
    for (const { reason, message, ...place } of proof(writer).unproved) {
      const output = proof(writer).outputOf(place);
      // Several projects may write the same file. The last one that was built determines its content.
      const isProvedByAnother = writers.some(
        (other) =>
          output !== undefined && proof(other).outputOf(place) === output && isProvedBy(other, place),
      );
      if (isProvedByAnother) continue;
      const isLeftOut =
        reason === "missing" && isTest(place.file) && untested.some((other) => !compiles(other, place.file));
      if (isLeftOut) leftOut.push(place);
      else unproved.push({ ...place, reason, message });
    }
  }
  for (const file of project.files) {
    const { fileName } = file.source;
    if (writers.some((writer) => compiles(writer, fileName))) continue;
    for (const site of file.functions) {
      const place = positionOf(file, site);
      if (isTest(fileName)) leftOut.push(place);
      else unproved.push({ ...place, reason: "uncompiled", message: uncompiled(site) });
    }
  }
  if (own?.unproved.length === 0 && unproved.length === 0) return { ...ownResult, isSilent: false };
  return { unproved, builders, leftOut, unbuilt: [], isSilent: false };
}

function compiles({ files }: Project, fileName: string): boolean {
  return files.some(({ source }) => source.fileName === fileName);
}

function uncompiled(site: TaggedFunction): string {
  return `Cannot verify ${whatOf(site)} of \`${site.name}\`: none of the built projects compiles this file.`;
}

function isSamePosition(one: Position, other: Position): boolean {
  return one.file === other.file && one.line === other.line && one.column === other.column;
}

/** Removes duplicates, because several projects may report the same. Two projects are the same if they have the same tsconfig. */
function distinct<T extends object>(all: readonly T[]): T[] {
  const keyOf = (one: T): string => ("config" in one ? String(one.config) : JSON.stringify(one));
  return [...new Map(all.map((one) => [keyOf(one), one])).values()];
}
