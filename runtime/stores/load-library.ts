import { LockMisconfiguredError, errorMessage } from "../base/errors";
import { declaredLibraries, type Declaration } from "./declared-libraries";

/** A logger that receives which library a URL uses, and why. */
export interface LibraryLog {
  debug?(message: string): void;
  warn(message: string): void;
}

const SILENT: LibraryLog = { warn() {} };

/** The client libraries for one kind of server. */
export interface Choice<Name extends string, Library> {
  /** The server, for messages. */
  readonly server: "Redis" | "PostgreSQL";
  /** The thing that needs one of them, for messages, such as `"A Redis URL"`. */
  readonly what: string;
  /** The names of the packages. The first one is the usual one. */
  readonly names: readonly Name[];
  /** The libraries as messages name them. */
  readonly described: Readonly<Record<Name, string>>;
  /** Functions that load the libraries. They return undefined if the library is too old, and throw if it cannot be loaded. */
  readonly loaders: Readonly<Record<Name, () => Library | undefined | Promise<Library | undefined>>>;
}

/** A library that cannot be used. */
interface Failure<Name extends string> {
  readonly name: Name;
  /** The error of the attempt to load it. Undefined if it is too old. */
  readonly error?: unknown;
}

/**
 * Loads a client library. By default, it is the one that the application declares, and the first one if it declares several. If that one
 * cannot be used, it is another one. The ES module loads it asynchronously.
 *
 * @throws {LockMisconfiguredError} if none is installed, or if all are too old
 */
export function loadLibrary<Name extends string, Library>(
  choice: Choice<Name, Library>,
  chosen: Name | undefined,
  log: LibraryLog = SILENT,
): Library | Promise<Library> {
  const declaration = chosen === undefined ? declaredLibraries(choice.names) : undefined;
  const declared = declaration?.names ?? [];
  const others = choice.names.filter((name) => !declared.includes(name));
  const candidates = chosen === undefined ? [...declared, ...others] : [chosen];
  return loadFirst(choice, candidates, [], (name, failures) =>
    explain(choice, log, name, chosen !== undefined, declaration, failures),
  );
}

function loadFirst<Name extends string, Library>(
  choice: Choice<Name, Library>,
  [name, ...others]: readonly Name[],
  failures: readonly Failure<Name>[],
  onLoad: (name: Name, failures: readonly Failure<Name>[]) => void,
): Library | Promise<Library> {
  if (name === undefined) throw noneOf(choice, failures);
  const fallBack = (failure: Failure<Name>): Library | Promise<Library> => {
    if (isOfBundle(failure.error)) throw noneOf(choice, [failure]);
    return loadFirst(choice, others, [...failures, failure], onLoad);
  };
  const loaded = (library: Library | undefined): Library | Promise<Library> => {
    if (library === undefined) return fallBack({ name });
    onLoad(name, failures);
    return library;
  };
  let loading: Library | undefined | Promise<Library | undefined>;
  try {
    loading = choice.loaders[name]();
  } catch (error) {
    return fallBack(failureOf(name, error));
  }
  return loading instanceof Promise
    ? loading.then(loaded, (error: unknown) => fallBack(failureOf(name, error)))
    : loaded(loading);
}

/** @param thrown the error of a loader. Its cause is the error of the package */
function failureOf<Name extends string>(name: Name, thrown: unknown): Failure<Name> {
  return { name, error: thrown instanceof Error && thrown.cause !== undefined ? thrown.cause : thrown };
}

function explain<Name extends string>(
  { server, names: known }: Pick<Choice<Name, unknown>, "server" | "names">,
  log: LibraryLog,
  name: Name,
  isChosen: boolean,
  declaration: Declaration<Name> | undefined,
  failures: readonly Failure<Name>[],
): void {
  const because = (why: string): string =>
    `Lockweave connects to ${server} with the package ${name}, because ${why}`;
  if (isChosen) return log.debug?.(because("the option `client` names it"));
  if (declaration === undefined)
    return log.debug?.(because(`no package.json declares ${known.join(" or ")}`));
  const { file, names } = declaration;
  const [failure] = failures;
  if (!names.includes(name) && failure !== undefined) {
    return log.warn(
      `${because(`${failure.name}, which ${file} declares, ${stateOf(failure)}`)}. Fix: npm install ${failure.name}@latest`,
    );
  }
  const both = names.length > 1 && failure === undefined ? "both" : "it";
  log.debug?.(because(`${file} declares ${both}`));
}

function stateOf({ error }: Failure<string>): string {
  return error === undefined ? "is too old" : "cannot be loaded";
}

/** Whether it is the error of esbuild if CommonJS code in an ES module requires a module of Node. */
function isOfBundle(error: unknown): boolean {
  return error !== undefined && errorMessage(error).includes("Dynamic require of");
}

function noneOf<Name extends string>(
  { what, names: known, described }: Omit<Choice<Name, unknown>, "loaders">,
  failures: readonly Failure<Name>[],
): LockMisconfiguredError {
  const names = failures.map(({ name }) => name);
  const needed = known.filter((name) => names.includes(name)).map((name) => described[name]);
  const needs = `${what} needs ${needed.join(", or ")}`;
  const cause = failures[0]?.error;
  if (isOfBundle(cause)) {
    return new LockMisconfiguredError(
      `${needs}, and this bundle cannot load it: ${errorMessage(cause)}. Fix: leave ${names.join()} out of the bundle, as an external package, or give the bundle a \`require\`: see "Everything in one file" in Lockweave's docs/compilers.md`,
      { cause },
    );
  }
  const tooOld = failures.filter(({ error }) => error === undefined).map(({ name }) => name);
  const found = tooOld.length === 0 ? "" : `, but the installed ${tooOld.join(" and ")} is too old`;
  const latest = tooOld.length === 0 ? "" : "@latest";
  const installs = known.filter((name) => names.includes(name)).map((name) => `npm install ${name}${latest}`);
  return new LockMisconfiguredError(`${needs}${found}. Fix: ${installs.join(", or ")}`, { cause });
}
