import { parseArgs } from "node:util";
import { didYouMean } from "../text/did-you-mean";
import { UsageError } from "../terminal/usage-error";

export type Command =
  | { readonly name: "help" | "version" }
  | {
      readonly name: "top" | "tail" | "inspect" | "release";
      readonly urls: readonly string[];
      /** The key of a lock. */
      readonly key: string;
      readonly match: string;
      readonly prefix: string;
      readonly json: boolean;
      readonly now: boolean;
      readonly isAgreed: boolean;
    }
  | {
      readonly name: "ui";
      readonly urls: readonly string[];
      readonly match: string;
      readonly prefix: string;
      /** 0 means any free port. */
      readonly port: number;
    }
  | { readonly name: "init"; readonly isAgreed: boolean }
  | (OfProject & { readonly name: "eject"; readonly isAgreed: boolean })
  | (OfProject & { readonly name: "diff"; readonly wanted: string | undefined })
  | (OfProject & { readonly name: "list"; readonly json: boolean })
  | (OfProject & { readonly name: "build"; readonly watch: boolean })
  | (OfProject & {
      readonly name: "check";
      readonly outputs: readonly string[];
      readonly json: boolean;
      readonly watch: boolean;
    });

interface OfProject {
  readonly project: string | undefined;
  /** The TypeScript that compiles the project, as a package name or a path. */
  readonly typescript: string | undefined;
}

export const HELP = `Usage: lockweave <command> [options]

Source code:
  init    Set up Lockweave in this project, after you confirm the changes
  list    List all tags with their keys and options
  check   Verify that the built output contains the lock of every tag, and analyze how locks affect each other
  build   Compile with a TypeScript that has no plugins, such as TypeScript 7
  diff    Show tagged functions before and after weaving: all, or one, as in \`diff OrderService.pay\`
  eject   Replace tags with the generated lock code

Running applications:
  top            Show held locks and waiters, live in a terminal
  tail           Print a line for each lock that is acquired, waited for, revoked, or released (sampled)
  ui             Serve a local web page with locks, timelines, and contention
  inspect <key>  Show one lock
  release <key>  Revoke a lock; its key becomes free when its body ends

Options:
  -p, --project <path>       The tsconfig.json or its directory, with the projects that it references
                             (default: the nearest tsconfig.json; list and check also work without one;
                             check finds a tsconfig.build.json or similar that wrote the output)
      --typescript <package> list, check, build, diff, eject: The TypeScript that compiles the project, or its path
                             (default: typescript, or another dependency that is TypeScript)
      --json                 list, check, top, tail, inspect: Print JSON
  -w, --watch                build: Build again after each change; check: Check the tags again after each change
      --output <path>        check: The output of a bundler: a file, a directory, or a glob such as "dist/**/*.js";
                             can be repeated (default: the files that tsconfig.json names)
      --redis <url>          top, tail, ui, inspect, release: Redis, Sentinel, or a Cluster node; can be repeated for
                             the masters of a quorum (default: the environment variable REDIS_URL)
      --match <pattern>      top, tail, ui: A pattern of the keys to show, as for SCAN
                             (default: LOCK_*, and all keys that have waiters)
      --prefix <text>        top, tail, ui, inspect, release: The client's keyPrefix
      --port <number>        ui: The local port to listen on (default: a free one)
      --now                  release: Free the key immediately, even if its body still runs
  -y, --yes                  init, eject, release: Confirm without asking
  -h, --help                 Show this help
  -v, --version              Show the version

Exit codes:
  0  Success
  1  A tag is wrong, the output lacks a lock, init leaves a change to you, or the result of eject would not compile
  2  Wrong usage
  3  Nothing was changed, because nobody confirmed (init, eject, release)
  \`build\` exits with the code of the compiler.
`;

const OPTIONS = {
  project: { type: "string", short: "p" },
  typescript: { type: "string" },
  json: { type: "boolean" },
  watch: { type: "boolean", short: "w" },
  output: { type: "string", multiple: true },
  redis: { type: "string", multiple: true },
  match: { type: "string" },
  prefix: { type: "string" },
  port: { type: "string" },
  now: { type: "boolean" },
  yes: { type: "boolean", short: "y" },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean", short: "v" },
} as const;

type OptionName = keyof typeof OPTIONS;

const COMMANDS: Readonly<Record<string, readonly OptionName[]>> = {
  init: ["yes"],
  list: ["project", "typescript", "json"],
  check: ["project", "typescript", "output", "json", "watch"],
  build: ["project", "typescript", "watch"],
  diff: ["project", "typescript"],
  eject: ["project", "typescript", "yes"],
  top: ["redis", "match", "prefix", "json"],
  tail: ["redis", "match", "prefix", "json"],
  ui: ["redis", "match", "prefix", "port"],
  inspect: ["redis", "prefix", "json"],
  release: ["redis", "prefix", "now", "yes"],
};

/**
 * Parses the command line.
 *
 * @throws {UsageError} if the command or an option is wrong
 */
export function parseCommand(args: readonly string[]): Command {
  const { tokens } = parseArgs({
    args: [...args],
    options: OPTIONS,
    allowPositionals: true,
    strict: false, // Our own messages suggest the nearest option.
    tokens: true,
  });
  const given = new Map<OptionName, string[]>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    if (!isOption(name)) throw new UsageError(`There is no option \`${rawName}\`.${nearestOption(rawName)}`);
    const takesValue = OPTIONS[name].type === "string";
    if (takesValue && (value === undefined || value === "" || (value.startsWith("-") && !inlineValue))) {
      const what =
        {
          redis: "a URL",
          match: "a pattern",
          prefix: "text",
          port: "a number",
          typescript: "a package or a path",
        }[name as string] ?? "a path";
      throw new UsageError(`Expected ${what} after \`${rawName}\`.`);
    }
    if (!takesValue && value !== undefined) throw new UsageError(`\`${rawName}\` takes no value.`);
    given.set(name, [...(given.get(name) ?? []), value ?? ""]);
  }
  if (given.has("help")) return { name: "help" };
  if (given.has("version")) return { name: "version" };
  return commandOf(positionals, given);
}

function commandOf(
  [name, ...rest]: readonly string[],
  given: ReadonlyMap<OptionName, readonly string[]>,
): Command {
  const allowed = name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (name === undefined) {
    const names = Object.keys(COMMANDS).map((one) => `\`${one}\``);
    throw new UsageError(`Expected a command: ${names.slice(0, -1).join(", ")}, or ${names.at(-1) ?? ""}.`);
  }
  if (allowed === undefined) {
    throw new UsageError(`There is no command \`${name}\`.${didYouMean(name, Object.keys(COMMANDS))}`);
  }
  for (const option of given.keys()) {
    if (!allowed.includes(option)) throw new UsageError(`\`lockweave ${name}\` takes no \`--${option}\`.`);
  }
  const [project, anotherProject] = given.get("project") ?? [];
  if (anotherProject !== undefined) throw new UsageError("`--project` appears twice.");
  const [typescript, anotherTypeScript] = given.get("typescript") ?? [];
  if (anotherTypeScript !== undefined) throw new UsageError("`--typescript` appears twice.");
  const outputs = given.get("output") ?? [];
  if (name === "ui") {
    const { urls, match, prefix } = liveCommand("top", rest, given);
    return { name, urls, match, prefix, port: portIn(given.get("port")) };
  }
  if (name === "top" || name === "tail" || name === "inspect" || name === "release")
    return liveCommand(name, rest, given);
  if (name === "diff") {
    const [wanted, another] = rest;
    if (another !== undefined) throw new UsageError(`Unexpected argument \`${another}\`.`);
    return { name, project, typescript, wanted };
  }
  const [stray] = rest;
  // With `--output`, more paths come from a shell that expanded a glob without quotes.
  if (stray !== undefined && outputs.length === 0) throw new UsageError(`Unexpected argument \`${stray}\`.`);
  if (name === "init") return { name, isAgreed: given.has("yes") };
  if (name === "build") return { name, project, typescript, watch: given.has("watch") };
  if (name === "eject") return { name, project, typescript, isAgreed: given.has("yes") };
  const json = given.has("json");
  if (name === "list") return { name, project, typescript, json };
  const watch = given.has("watch");
  const other = json ? "--json" : outputs.length > 0 ? "--output" : undefined;
  if (watch && other !== undefined) {
    throw new UsageError(`\`--watch\` checks only the tags, so it cannot be combined with \`${other}\`.`);
  }
  return { name: "check", project, typescript, outputs: [...outputs, ...rest], json, watch };
}

function liveCommand(
  name: "top" | "tail" | "inspect" | "release",
  rest: readonly string[],
  given: ReadonlyMap<OptionName, readonly string[]>,
): Extract<Command, { readonly now: boolean }> {
  const { REDIS_URL: usual = "" } = process.env;
  const urls = given.get("redis") ?? (usual === "" ? [] : [usual]);
  const isOfAll = name === "top" || name === "tail";
  const [key = "", ...others] = isOfAll ? ["", ...rest] : rest;
  const [stray] = others;
  if (stray !== undefined) throw new UsageError(`Unexpected argument \`${stray}\`.`);
  if (!isOfAll && key === "") {
    throw new UsageError(`Expected the key of a lock: \`lockweave ${name} LOCK_payOrder_4711\`.`);
  }
  if (urls.length === 0) throw new UsageError("Expected `--redis <url>`, or REDIS_URL in the environment.");
  const [match = "LOCK_*"] = given.get("match") ?? [];
  const [prefix = ""] = given.get("prefix") ?? [];
  const [json, now, isAgreed] = [given.has("json"), given.has("now"), given.has("yes")];
  return { name, urls, key, match, prefix, json, now, isAgreed };
}

function portIn([text = "0", another]: readonly string[] = []): number {
  if (another !== undefined) throw new UsageError("`--port` appears twice.");
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`Expected \`--port\` to be a number up to 65535, got \`${text}\`.`);
}

function isOption(name: string): name is OptionName {
  return Object.hasOwn(OPTIONS, name);
}

function nearestOption(rawName: string): string {
  const names = Object.keys(OPTIONS).map((name) => `--${name}`);
  const begun = names.find((name) => rawName.length > 2 && name.startsWith(rawName));
  return begun === undefined ? didYouMean(rawName, names) : ` Did you mean \`${begun}\`?`;
}
