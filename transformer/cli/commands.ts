/** A command of `lockweave`. */
interface CommandInfo {
  readonly group: string;
  /** The arguments that the command takes, as its help shows them. */
  readonly usage?: string;
  readonly summary: string;
  readonly options: readonly OptionName[];
  /** The help for an option, if it differs from the text for all commands. */
  readonly about?: Readonly<Partial<Record<OptionName, string>>>;
}

const SOURCES = "Source code";
const RUNNING = "Running applications";
const DATABASES = "Databases";
const OF_STORE = ["redis", "postgres", "schema", "prefix"] as const;

/** The commands in the order of the help. */
export const COMMANDS: Readonly<Record<string, CommandInfo>> = {
  init: {
    group: SOURCES,
    summary: "Set up Lockweave in this project, after you confirm the changes",
    options: ["store", "yes"],
  },
  list: {
    group: SOURCES,
    summary: "List all tags with their keys and options",
    options: ["project", "write", "typescript", "json"],
    about: {
      project:
        "The tsconfig.json or its directory (default: the nearest one, or all sources if there is none)",
    },
  },
  check: {
    group: SOURCES,
    summary: "Verify that the built output contains the lock of every tag, and find deadlocks",
    options: ["project", "output", "list", "max-warnings", "watch", "typescript", "json"],
    about: {
      project:
        "The only tsconfig.json to check, or its directory (default: each tsconfig*.json of the project, or all sources if there is none)",
      watch: "Check the tags, but not the output, after each change",
    },
  },
  build: {
    group: SOURCES,
    summary: "Compile with TypeScript 7, or with another TypeScript that has no plugins",
    options: ["project", "typescript", "watch"],
    about: { watch: "Build again after each change" },
  },
  diff: {
    group: SOURCES,
    usage: "[function]",
    summary: "Show tagged functions before and after weaving: all, or one such as `OrderService.pay`",
    options: ["project", "typescript"],
  },
  eject: {
    group: SOURCES,
    summary: "Replace tags with the generated lock code",
    options: ["project", "typescript", "yes"],
  },
  top: {
    group: RUNNING,
    summary: "Show held locks and waiters, live in a terminal",
    options: [...OF_STORE, "match", "json"],
  },
  tail: {
    group: RUNNING,
    summary: "Print a line for each lock that is acquired, waited for, revoked, or released (sampled)",
    options: [...OF_STORE, "match", "json"],
  },
  ui: {
    group: RUNNING,
    summary: "Serve a local web page with locks, timelines, and contention",
    options: [...OF_STORE, "match", "port"],
  },
  inspect: {
    group: RUNNING,
    usage: "<key>",
    summary: "Show one lock",
    options: [...OF_STORE, "json"],
  },
  release: {
    group: RUNNING,
    usage: "<key>",
    summary: "Revoke a lock; its key becomes free when its body ends",
    options: [...OF_STORE, "now", "yes"],
  },
  postgres: {
    group: DATABASES,
    summary: "Print the SQL that creates the tables for locks in PostgreSQL, or apply it",
    options: ["apply", "schema"],
  },
};

/** An option of a command. `parseArgs` of Node reads `type`, `short`, and `multiple`. */
interface OptionInfo {
  readonly type: "string" | "boolean";
  readonly short?: string;
  readonly multiple?: boolean;
  /** The value, as the help shows it. */
  readonly value?: string;
  /** The value, as an error says it. */
  readonly expected?: string;
  readonly about: string;
}

export const OPTIONS = {
  project: {
    type: "string",
    short: "p",
    value: "path",
    expected: "a path",
    about:
      "The tsconfig.json or its directory, with the projects that it references (default: the nearest one)",
  },
  typescript: {
    type: "string",
    value: "package",
    expected: "a package or a path",
    about:
      "The TypeScript that compiles the project, as a package or a path (default: typescript, or another dependency that is TypeScript)",
  },
  output: {
    type: "string",
    multiple: true,
    value: "path",
    expected: "a path",
    about:
      'The output of a bundler: a file, a directory, or a glob such as "dist/**/*.js"; can be repeated (default: the output that tsconfig.json names)',
  },
  write: {
    type: "string",
    value: "file",
    expected: "a file",
    about: "Write all locks to this Markdown file, for reviews (default: print them)",
  },
  list: {
    type: "string",
    value: "file",
    expected: "a file",
    about: "Also verify that the file of `lockweave list --write` has all locks",
  },
  "max-warnings": {
    type: "string",
    value: "number",
    expected: "a number",
    about: "Exit with 1 if there are more warnings than this; 0 makes each warning an error",
  },
  watch: { type: "boolean", short: "w", about: "Repeat the command after each change" },
  json: { type: "boolean", about: "Print JSON" },
  redis: {
    type: "string",
    multiple: true,
    value: "url",
    expected: "a URL",
    about:
      "Redis, Sentinel, or a Cluster node; can be repeated for the masters of a quorum (default: the environment variable REDIS_URL)",
  },
  postgres: {
    type: "string",
    value: "url",
    expected: "a URL",
    about: "The PostgreSQL database with the locks (default: the environment variable POSTGRES_URL)",
  },
  match: {
    type: "string",
    value: "pattern",
    expected: "a pattern",
    about: "The keys to show, as for SCAN in Redis (default: LOCK_*, and all keys with a store queue)",
  },
  prefix: { type: "string", value: "text", expected: "text", about: "The keyPrefix of the Redis client" },
  schema: {
    type: "string",
    value: "name",
    expected: "a name",
    about: "The schema of the tables in PostgreSQL (default: lockweave)",
  },
  apply: {
    type: "string",
    value: "url",
    expected: "a URL",
    about: "The PostgreSQL database that gets the tables (default: print the SQL)",
  },
  store: {
    type: "string",
    value: "name",
    expected: "redis or postgres",
    about: "Where the locks live: redis or postgres (default: by the clients in package.json)",
  },
  port: {
    type: "string",
    value: "number",
    expected: "a number",
    about: "The local port to listen on (default: a free one)",
  },
  now: {
    type: "boolean",
    about:
      "Free the key immediately, even if its body still runs (in PostgreSQL, not while a transaction guards the lock)",
  },
  yes: { type: "boolean", short: "y", about: "Confirm without asking" },
  help: { type: "boolean", short: "h", about: "Show this help, or the help of a command" },
  version: { type: "boolean", short: "v", about: "Show the version" },
} as const satisfies Record<string, OptionInfo>;

export type OptionName = keyof typeof OPTIONS;

export function isOption(name: string): name is OptionName {
  return Object.hasOwn(OPTIONS, name);
}

/** Returns the command with this name. */
export function commandInfo(name: string | undefined): CommandInfo | undefined {
  return name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
}
