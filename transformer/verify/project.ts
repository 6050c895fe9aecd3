import type * as TS from "typescript";
import type { Analysis } from "../analyze/analyze";
import type { Parser } from "../parser/parser";
import type { NeedPlan } from "../read/need";
import type { TagName } from "../read/spelling";
import type { Problem } from "../text/problems";
import type { Span } from "../text/span";
import type { Woven, WovenSite } from "../weave/weave";

/** The compiler's project behind one tsconfig.json. */
export interface Project {
  readonly ts: Parser;
  /** The path of its tsconfig.json. */
  readonly config: string;
  /** The tool that builds it with its locks, or `another` if there is no tsconfig.json. */
  readonly builder: "tspc" | "lockweave build" | "another";
  /** Whether {@link typeProblems} can use a type checker. */
  readonly checksTypes: boolean;
  readonly options: TS.CompilerOptions;
  /** Our entry among the plugins in tsconfig.json. */
  readonly plugin: { readonly transformProgram?: boolean } | undefined;
  readonly files: readonly TaggedFile[];
  /** The paths of all files that it is built from, except those of packages. */
  readonly sources: readonly string[];
  /** The problems of our entry in tsconfig.json. */
  readonly problems: readonly Problem[];
  /** Reports imports of code that was built elsewhere without the weave. */
  readonly unlocked: () => readonly PlacedProblem[];
  /** Reports imports of code that packages export without its locks, and that nothing weaves. */
  readonly unlockedSources: () => readonly PlacedProblem[];
  /** Returns the sources of linked packages that have tags. A bundler may include them. */
  readonly linked: () => readonly TaggedFile[];
  /** Returns the problems of tags that only a type checker finds. */
  readonly typeProblems: () => readonly PlacedProblem[];
  /** Returns the analysis of how the tagged functions affect each other, or `undefined` without a type checker. */
  readonly analysis: () => Analysis | undefined;
  /** Returns all files that the weave changes, or `undefined` if TypeScript's own formatter and checker are missing. */
  readonly wovenSources: () => readonly WovenSource[] | undefined;
  /** Returns the errors that the project would have if these were the texts of its files. */
  readonly errorsWith: (texts: ReadonlyMap<string, string>) => readonly PlacedProblem[];
  /** Returns the compiled output of the woven file, by the names of the output files. */
  readonly emitWoven: (file: TaggedFile) => ReadonlyMap<string, string>;
}

/** A source file with its tags, and the result of the weave. */
export interface WovenSource {
  readonly fileName: string;
  readonly text: string;
  readonly woven: Woven;
}

/** A problem in a file of the program, or in no file if nothing in the program causes it. */
export interface PlacedProblem {
  readonly file: TS.SourceFile | undefined;
  readonly problem: Problem;
}

/** A tag, and the name of its function. */
export interface TaggedFunction extends Span {
  readonly tag: TagName;
  readonly name: string;
  /** The offset of the function's body. */
  readonly bodyAt: number;
}

/** A source file of the project that has tags. */
export interface TaggedFile {
  readonly source: TS.SourceFile;
  readonly sites: readonly WovenSite[];
  readonly needs: readonly NeedPlan[];
  /** The functions that are locked or checked in the woven code. A function with several tags occurs once for each. */
  readonly functions: readonly TaggedFunction[];
  /** The positions of all tags, including those of needs. */
  readonly tags: readonly Span[];
  readonly problems: readonly Problem[];
  /** Likely mistakes that do no harm to the build. */
  readonly warnings: readonly Problem[];
}
