/** A package.json that declares client libraries. */
export interface Declaration<Name extends string> {
  readonly file: string;
  readonly names: readonly Name[];
}

const KINDS = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"] as const;

/**
 * Returns the nearest package.json of the application that declares one of these client libraries. The search begins at the program's first
 * file, and then at the working directory. A library that only another package installed does not count.
 */
export function declaredLibraries<Name extends string>(
  libraries: readonly Name[],
): Declaration<Name> | undefined {
  const { realpathSync } = process.getBuiltinModule("node:fs");
  const { dirname } = process.getBuiltinModule("node:path");
  const [, program] = process.argv;
  return (
    unlessFailed(() =>
      program === undefined
        ? undefined
        : declarationAbove(outside(dirname(realpathSync(program))), libraries),
    ) ?? unlessFailed(() => declarationAbove(process.cwd(), libraries))
  );
}

/** Returns the directory itself, or the one of the application if a tool in its `node_modules` runs it. */
function outside(directory: string): string {
  return /^(.*?)[/\\]node_modules(?:[/\\]|$)/.exec(directory)?.[1] ?? directory;
}

function declarationAbove<Name extends string>(
  directory: string,
  libraries: readonly Name[],
): Declaration<Name> | undefined {
  const { dirname, join } = process.getBuiltinModule("node:path");
  for (let dir = directory; ; dir = dirname(dir)) {
    const file = join(dir, "package.json");
    const names = unlessFailed(() => namesIn(file, libraries)) ?? [];
    if (names.length > 0) return { file, names };
    if (dir === dirname(dir)) return undefined;
  }
}

function namesIn<Name extends string>(file: string, libraries: readonly Name[]): Name[] {
  const { readFileSync } = process.getBuiltinModule("node:fs");
  const manifest = JSON.parse(readFileSync(file, "utf8")) as Partial<Record<string, object>>;
  return libraries.filter((name) => KINDS.some((kind) => name in (manifest[kind] ?? {})));
}

function unlessFailed<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined; // The file is missing or invalid, or there is no file system.
  }
}
