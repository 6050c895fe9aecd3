import type * as TS from "typescript";
import type { Analysis } from "../analyze/analyze";
import type { Parser } from "../parser/parser";
import type { Problem } from "../text/problems";
import type { Woven, WovenSite } from "../weave/weave";

/** The compiler's project behind one tsconfig.json. */
export interface Project {
  readonly ts: Parser;
  /** The path of its tsconfig.json. */
  readonly config: string;
  /** What compiles it with its locks: another, where there is no tsconfig.json. */
  readonly builder: "tspc" | "lockweave build" | "another";
  /** Whether {@link typeProblems} has a type checker to ask. */
  readonly checksTypes: boolean;
  readonly options: TS.CompilerOptions;
  /** Our entry among the plugins in tsconfig.json. */
  readonly plugin: { readonly transformProgram?: boolean } | undefined;
  readonly files: readonly TaggedFile[];
  /** The paths of what it is made of, but for packages. */
  readonly sources: readonly string[];
  /** What is wrong with our entry in tsconfig.json. */
  readonly problems: readonly Problem[];
  /** What it takes in from elsewhere that was built without the weave. */
  readonly unlocked: () => readonly PlacedProblem[];
  /** What packages hand out without its locks, where nobody is to weave it. */
  readonly unlockedSources: () => readonly PlacedProblem[];
  /** The sources of linked packages that have tags: a bundler may take them in. */
  readonly linked: () => readonly TaggedFile[];
  /** What only a type checker knows of the tags. */
  readonly typeProblems: () => readonly PlacedProblem[];
  /** What the tagged functions do to each other; `undefined` where there is no type checker that could be asked. */
  readonly analysis: () => Analysis | undefined;
  /** All that the weave changes; `undefined` where TypeScript's own formatter and checker are missing. */
  readonly wovenSources: () => readonly WovenSource[] | undefined;
  /** The errors of the project, were these the texts of its files. */
  readonly errorsWith: (texts: ReadonlyMap<string, string>) => readonly PlacedProblem[];
  /** What the woven file would be compiled to, by the names of the outputs. */
  readonly emitWoven: (file: TaggedFile) => ReadonlyMap<string, string>;
}

/** A source file with its tags, and what the weave makes of it. */
export interface WovenSource {
  readonly fileName: string;
  readonly text: string;
  readonly woven: Woven;
}

/** A problem that stands in a file of the program; in none where nothing of the program is to blame. */
export interface PlacedProblem {
  readonly file: TS.SourceFile | undefined;
  readonly problem: Problem;
}

/** A source file of the project that has tags. */
export interface TaggedFile {
  readonly source: TS.SourceFile;
  readonly sites: readonly WovenSite[];
  readonly problems: readonly Problem[];
  /** What is likely to be a mistake, and does no harm to the build. */
  readonly warnings: readonly Problem[];
}
