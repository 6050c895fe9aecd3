import { parser } from "../../parser/parser";
import { ConfigText } from "./config-text";
import type { FileChange } from "../workspace/write-files";
import type { LockStore } from "./lock-store";
import type { Project } from "./project";

/** The planned changes to a project. Nothing is written until they are applied. */
export class Draft {
  readonly dependencies = new Set<string>();
  readonly devDependencies = new Set<string>();
  readonly byHand: ByHand[] = [];
  /** The commands to run once all packages are installed. */
  readonly commands: (readonly [program: string, ...args: string[]])[] = [];
  /** Where the locks live. */
  readonly store: LockStore;
  readonly #project: Project;
  readonly #texts = new Map<string, string>();
  /** The text of each file when it was read. Changes are based on it. */
  readonly #before = new Map<string, string | undefined>();

  constructor(project: Project, store: LockStore) {
    this.#project = project;
    this.store = store;
  }

  /** The new text of each file to write, by file name. */
  get changes(): ReadonlyMap<string, string> {
    return this.#texts;
  }

  /** The changes for `writeFiles`, with the text before each change. */
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
   * Changes the object that the file contains or exports. Does nothing if `change` returns `false`.
   *
   * @returns whether the file was understood
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
    for (const name of packages) this.#add(name, this.dependencies);
  }

  installDev(...packages: readonly string[]): void {
    for (const name of packages) this.#add(name, this.devDependencies);
  }

  #add(spec: string, where: Set<string>): void {
    if (!this.#project.has(spec.replace(/(?!^)@.*$/, ""))) where.add(spec);
  }
}

export const NOT_UNDERSTOOD = "Lockweave does not understand this file. Add to it";

/** A step that a person must do by hand. */
export interface ByHand {
  readonly file: string;
  readonly why: string;
  readonly lines: readonly string[];
}
