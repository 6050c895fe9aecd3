/** Returns the name of the package that a file belongs to, if it is in `node_modules`. */
export function packageOf(file: string): string | undefined {
  const [, name] = /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(file) ?? [];
  return name?.replace("\\", "/");
}

/** Returns the files of the functions on the stack, the innermost first. */
export function filesOnStack(below: (...args: never) => unknown): string[] {
  const { prepareStackTrace, stackTraceLimit } = Error;
  const holder: { stack?: unknown } = {};
  try {
    Error.stackTraceLimit = Infinity;
    Error.prepareStackTrace = (_, sites) => sites.map((site) => site.getFileName());
    Error.captureStackTrace(holder, below);
    const files = holder.stack as readonly (string | null | undefined)[]; // The stack is computed when it is read.
    return files.filter((file) => typeof file === "string");
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
}
