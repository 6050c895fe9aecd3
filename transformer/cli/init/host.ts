import type { Draft } from "./draft";
import type { Project } from "./project";

/** What compiles code, or runs it: a section of docs/hosts.md. */
export interface Host {
  readonly name: string;
  /** By what the project is seen to use it. */
  evidence(project: Project): string | undefined;
  readonly isForTests?: true;
  /** Drafts what has to be changed. */
  setUp(draft: Draft, project: Project): void;
  /** What to type once it is set up. */
  next(project: Project, draft: Draft, lock: string): NextStep;
  /** How the first lock is compiled and run; nothing where that takes the whole application. */
  readonly tryOut?: TryOut;
}

export interface NextStep {
  readonly command: string;
  /** What it does, and where the woven code is to be seen. */
  readonly about: string;
}

/**
 * The programs to run, one after the other.
 *
 * @param file the first lock
 * @param dir an empty directory in the project
 */
export type TryOut = (project: Project, file: string, dir: string) => readonly Step[];

/** Arguments for Node. What is written to `dir` may not be known before it is there. */
export type Step = readonly string[] | (() => readonly string[]);
