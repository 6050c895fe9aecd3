import { parser } from "../../parser/parser";
import { ConfigText } from "./config-text";
import type { FileChange } from "../write-files";
import type { Project } from "./project";

/** What is to be done to a project, of which nothing is done yet. */
export class Draft {
  readonly dependencies = new Set<string>();
  readonly devDependencies = new Set<string>();
  readonly byHand: ByHand[] = [];
  /** To be run when all is installed. */
  readonly commands: (readonly [program: string, ...args: string[]])[] = [];
  readonly #project: Project;
  readonly #texts = new Map<string, string>();
  /** What the files contained when they were read: a change is made of that. */
  readonly #before = new Map<string, string | undefined>();

  constructor(project: Project) {
    this.#project = project;
  }

  /** The files that are to be written, by their names. */
  get changes(): ReadonlyMap<string, string> {
    return this.#texts;
  }

  /** The same for whoever writes them. */
  get fileChanges(): FileChange[] {
    return [...this.#texts].map(([path, after]) => ({ path, before: this.#before.get(path), after }));
  }

  text(file: string): string | undefined {
    if (!this.#before.has(file)) this.#before.set(file, this.#project.read(file));
    return this.#texts.get(file) ?? this.#before.get(file);
  }

  create(file: string, text: string): void {
    if (!this.#before.has(file)) this.#before.set(file, this.#project.read(file));
    this.#texts.set(file, text);
  }

  /**
   * Changes the object that the file has or exports, unless the change finds something that it does not understand.
   *
   * @returns whether it was understood
   */
  edit(file: string, change: (config: ConfigText) => boolean): boolean {
    const before = this.text(file);
    if (before === undefined) return false;
    const config = new ConfigText(parser(), file, before);
    if (!config.isUnderstood || !change(config)) return false;
    const after = config.toString();
    if (after !== before) this.#texts.set(file, after);
    return true;
  }

  install(...packages: readonly string[]): void {
    for (const name of packages) this.#want(name, this.dependencies);
  }

  installDev(...packages: readonly string[]): void {
    for (const name of packages) this.#want(name, this.devDependencies);
  }

  #want(spec: string, where: Set<string>): void {
    if (!this.#project.has(spec.replace(/(?!^)@.*$/, ""))) where.add(spec);
  }
}

export const NOT_UNDERSTOOD = "It is written in a way that is not understood here. Write into it";

/** What is left to whoever knows the project. */
export interface ByHand {
  readonly file: string;
  readonly why: string;
  readonly lines: readonly string[];
}
