import type { Draft } from "./draft";
import type { Project } from "./project";
import type { Startup } from "./startup";

/** A tool that compiles or runs code. Each one has a section in docs/compilers.md. */
export interface Host {
  readonly name: string;
  /** Returns the evidence that the project uses this host, or `undefined`. */
  evidence(project: Project): string | undefined;
  readonly isForTests?: true;
  /** Drafts the required changes. */
  setUp(draft: Draft, project: Project): void;
  /** Returns the command to run after the setup. */
  next(project: Project, draft: Draft, lock: string): NextStep;
  /** Compiles and runs the first lock. `undefined` if that requires the whole application. */
  readonly tryOut?: TryOut;
  /** A framework, which never builds a single file. `init` creates no first lock for it. */
  readonly isFramework?: true;
  /** The file that calls `configure()`. */
  readonly startup?: Startup;
}

export interface NextStep {
  readonly command: string;
  /** A phrase that describes the effect of the command, and where the woven code appears. */
  readonly about: string;
  /** The path or the pattern of the built files, for `lockweave check --output`. */
  readonly output?: string;
  /** Set if the command weaves code when it is loaded, and writes no files to check. */
  readonly writesNothing?: true;
}

/**
 * Returns the programs to run in order.
 *
 * @param file the first lock
 * @param dir an empty directory in the project
 */
export type TryOut = (project: Project, file: string, dir: string) => readonly Step[];

/** The arguments for Node. A function returns them after the earlier steps, when the files in `dir` exist. */
export type Step = readonly string[] | (() => readonly string[]);
