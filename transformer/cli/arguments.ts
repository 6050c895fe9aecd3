import { parseArgs } from "node:util";
import { RUNNER } from "../../runtime/base/runner";
import { DEFAULT_SCHEMA } from "../../runtime/stores/postgres/schema-name";
import { didYouMean } from "../text/did-you-mean";
import type { Target } from "../console/open-deployment";
import { UsageError } from "../terminal/usage-error";
import { commandInfo, COMMANDS, isOption, OPTIONS, type OptionName } from "./commands";
import { STORE_NAMES, type StoreName } from "./init/lock-store";

export type Command =
  | { readonly name: "version" }
  | {
      readonly name: "help";
      /** The command whose help to show. Undefined for the list of commands. */
      readonly of: string | undefined;
    }
  | {
      readonly name: "top" | "tail" | "inspect" | "release";
      readonly target: Target;
      /** The key of a lock. */
      readonly key: string;
      readonly json: boolean;
      readonly now: boolean;
      readonly isAgreed: boolean;
    }
  | {
      readonly name: "ui";
      readonly target: Target;
      /** 0 means any free port. */
      readonly port: number;
    }
  | {
      readonly name: "postgres";
      /** The database that gets the tables. Undefined if the SQL is to be printed. */
      readonly url: string | undefined;
      readonly schema: string;
    }
  | {
      readonly name: "init";
      readonly isAgreed: boolean;
      /** The store of the locks. Undefined if package.json decides. */
      readonly store: StoreName | undefined;
    }
  | (OfProject & { readonly name: "eject"; readonly isAgreed: boolean })
  | (OfProject & { readonly name: "diff"; readonly wanted: string | undefined })
  | (OfProject & {
      readonly name: "list";
      readonly json: boolean;
      /** The file to write the list to. */
      readonly write: string | undefined;
    })
  | (OfProject & { readonly name: "build"; readonly watch: boolean })
  | (OfProject & {
      readonly name: "check";
      readonly outputs: readonly string[];
      /** The list of all locks to compare with the sources. */
      readonly list: string | undefined;
      /** How many warnings are allowed. Undefined if any number is. */
      readonly maxWarnings: number | undefined;
      readonly json: boolean;
      readonly watch: boolean;
    });

interface OfProject {
  readonly project: string | undefined;
  /** The TypeScript that compiles the project, as a package name or a path. */
  readonly typescript: string | undefined;
}

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
    const option = OPTIONS[name];
    if (option.type === "boolean") {
      if (value !== undefined) throw new UsageError(`\`${rawName}\` takes no value.`);
    } else if (value === undefined || value === "" || (value.startsWith("-") && !inlineValue)) {
      throw new UsageError(`Expected ${option.expected} after \`${rawName}\`.`);
    }
    given.set(name, [...(given.get(name) ?? []), value ?? ""]);
  }
  if (given.has("help")) return { name: "help", of: positionals[0] };
  if (given.has("version")) return { name: "version" };
  return commandOf(positionals, given);
}

function commandOf(
  [name, ...rest]: readonly string[],
  given: ReadonlyMap<OptionName, readonly string[]>,
): Command {
  const command = commandInfo(name);
  if (name === undefined) {
    const names = Object.keys(COMMANDS).map((one) => `\`${one}\``);
    throw new UsageError(`Expected a command: ${names.slice(0, -1).join(", ")}, or ${names.at(-1) ?? ""}.`);
  }
  if (command === undefined) {
    throw new UsageError(`There is no command \`${name}\`.${didYouMean(name, Object.keys(COMMANDS))}`);
  }
  for (const option of given.keys()) {
    if (!command.options.includes(option))
      throw new UsageError(`\`lockweave ${name}\` takes no \`--${option}\`.`);
  }
  const project = onlyValue("project", given);
  const typescript = onlyValue("typescript", given);
  const outputs = given.get("output") ?? [];
  if (name === "ui") {
    const { target } = liveCommand("top", rest, given);
    return { name, target, port: portIn(given.get("port")) };
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
  if (name === "postgres") return postgresCommand(given);
  if (name === "init") return { name, isAgreed: given.has("yes"), store: storeIn(given.get("store")) };
  if (name === "build") return { name, project, typescript, watch: given.has("watch") };
  if (name === "eject") return { name, project, typescript, isAgreed: given.has("yes") };
  const json = given.has("json");
  if (name === "list") {
    const write = onlyValue("write", given);
    if (write !== undefined && json)
      throw new UsageError("`--write` writes Markdown, so it cannot be combined with `--json`.");
    return { name, project, typescript, json, write };
  }
  const list = onlyValue("list", given);
  const watch = given.has("watch");
  const other = (["json", "output", "list", "max-warnings"] as const).find((option) => given.has(option));
  if (watch && other !== undefined) {
    throw new UsageError(`\`--watch\` checks only the tags, so it cannot be combined with \`--${other}\`.`);
  }
  const maxWarnings = maxWarningsIn(onlyValue("max-warnings", given));
  return {
    name: "check",
    project,
    typescript,
    outputs: [...outputs, ...rest],
    list,
    maxWarnings,
    json,
    watch,
  };
}

function onlyValue(
  option: OptionName,
  given: ReadonlyMap<OptionName, readonly string[]>,
): string | undefined {
  const [value, another] = given.get(option) ?? [];
  if (another !== undefined) throw new UsageError(`\`--${option}\` appears twice.`);
  return value;
}

function liveCommand(
  name: "top" | "tail" | "inspect" | "release",
  rest: readonly string[],
  given: ReadonlyMap<OptionName, readonly string[]>,
): Extract<Command, { readonly now: boolean }> {
  const isOfAll = name === "top" || name === "tail";
  const [key = "", ...others] = isOfAll ? ["", ...rest] : rest;
  const [stray] = others;
  if (stray !== undefined) throw new UsageError(`Unexpected argument \`${stray}\`.`);
  if (!isOfAll && key === "") {
    throw new UsageError(`Expected the key of a lock: \`${RUNNER} lockweave ${name} LOCK_payOrder_4711\`.`);
  }
  const [json, now, isAgreed] = [given.has("json"), given.has("now"), given.has("yes")];
  return { name, target: targetIn(given), key, json, now, isAgreed };
}

/** Returns where the locks are. A URL of the command line counts more than one of the environment. */
function targetIn(given: ReadonlyMap<OptionName, readonly string[]>): Target {
  const { REDIS_URL = "", POSTGRES_URL = "" } = process.env;
  const isGiven = given.has("redis") || given.has("postgres");
  const redis = given.get("redis") ?? (isGiven || REDIS_URL === "" ? [] : [REDIS_URL]);
  const postgres = given.get("postgres") ?? (isGiven || POSTGRES_URL === "" ? [] : [POSTGRES_URL]);
  const [url, anotherUrl] = postgres;
  if (anotherUrl !== undefined) throw new UsageError("`--postgres` appears twice.");
  if (url !== undefined && redis.length > 0) {
    throw new UsageError(
      isGiven
        ? "Expected `--redis` or `--postgres`, but got both."
        : "Both REDIS_URL and POSTGRES_URL are in the environment. Fix: choose one with `--redis <url>` or `--postgres <url>`.",
    );
  }
  const [match = "LOCK_*"] = given.get("match") ?? [];
  if (url !== undefined) {
    if (given.has("prefix"))
      throw new UsageError("`--prefix` is for Redis, so it cannot be combined with a PostgreSQL URL.");
    return { postgres: url, schema: schemaIn(given), match };
  }
  if (redis.length === 0) {
    throw new UsageError(
      "Expected `--redis <url>` or `--postgres <url>`, or REDIS_URL or POSTGRES_URL in the environment.",
    );
  }
  if (given.has("schema"))
    throw new UsageError("`--schema` is for PostgreSQL, so it cannot be combined with a Redis URL.");
  const [prefix = ""] = given.get("prefix") ?? [];
  return { redis, match, prefix };
}

function postgresCommand(
  given: ReadonlyMap<OptionName, readonly string[]>,
): Extract<Command, { readonly name: "postgres" }> {
  return { name: "postgres", url: onlyValue("apply", given), schema: schemaIn(given) };
}

function schemaIn(given: ReadonlyMap<OptionName, readonly string[]>): string {
  return onlyValue("schema", given) ?? DEFAULT_SCHEMA;
}

function storeIn([text, another]: readonly string[] = []): StoreName | undefined {
  if (another !== undefined) throw new UsageError("`--store` appears twice.");
  const store = STORE_NAMES.find((name) => name === text);
  if (store !== undefined || text === undefined) return store;
  throw new UsageError(`Expected \`--store\` to be redis or postgres, got \`${text}\`.`);
}

function portIn([text = "0", another]: readonly string[] = []): number {
  if (another !== undefined) throw new UsageError("`--port` appears twice.");
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`Expected \`--port\` to be a number up to 65535, got \`${text}\`.`);
}

function maxWarningsIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text)) return Number(text);
  throw new UsageError(`Expected \`--max-warnings\` to be a number from 0, got \`${text}\`.`);
}

function nearestOption(rawName: string): string {
  const names = Object.keys(OPTIONS).map((name) => `--${name}`);
  const begun = names.find((name) => rawName.length > 2 && name.startsWith(rawName));
  return begun === undefined ? didYouMean(rawName, names) : ` Did you mean \`${begun}\`?`;
}
