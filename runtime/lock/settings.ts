import { checked } from "../attributes/check";
import { formatAttribute, refusedAmong, replacedBy } from "../attributes/conflicts";
import { LOCK_ATTRIBUTES, type LockOptions, type NamesOf, type OptionRow } from "../attributes/table";
import { LockOptionError } from "../base/errors";
import { formatValue } from "../base/format-value";
import { UNLIMITED } from "../base/limits";
import { isOptions, readOptions } from "../base/options";

export type { LockOptions };

/** The options of one lock, complete and checked. Times are in milliseconds. Readers have `UNLIMITED` permits. */
export type Settings = {
  readonly [Name in OptionName as SettingName<Name>]: Name extends TimeName
    ? number | Extract<(typeof LOCK_ATTRIBUTES)[Name]["default"], undefined>
    : Required<LockOptions>[Name];
};

type OptionName = keyof LockOptions;
type TimeName = NamesOf<typeof LOCK_ATTRIBUTES, "time">;
/** A time is in milliseconds, and its name says so: `lockTimeMs`. */
type SettingName<Name extends OptionName> = Name extends TimeName ? `${Name}Ms` : Name;

const ROWS = Object.entries(LOCK_ATTRIBUTES) as readonly (readonly [OptionName, OptionRow])[];

/** The settings that apply unless the lock or `configure({ defaults })` gives others. */
export const DEFAULTS = Object.fromEntries(
  ROWS.map(([name, row]) => [settingName(name), row.default]),
) as unknown as Settings;

function settingName<Name extends OptionName>(name: Name): SettingName<Name> {
  const isTime = LOCK_ATTRIBUTES[name].kind === "time";
  return (isTime ? `${name}Ms` : name) as SettingName<Name>;
}

/** Returns the way in which the lock is shared, in the notation of options, for messages. */
export function sharingOf({ mode, permits: most }: Settings): string {
  if (mode === "read") return "mode=read";
  return most === 1 ? "mode=write" : `permits=${most}`;
}

/** The names of all options of a lock. */
export const LOCK_OPTIONS: readonly string[] = Object.keys(LOCK_ATTRIBUTES);

/** Attributes of tags that make the key. `withLock()` gets the key as an argument instead. */
const KEY_ATTRIBUTES: ReadonlySet<string> = new Set(["businessFlag", "keyName", "key", "each"]);
const FIX_OF_KEYS =
  '. withLock() takes the key, or a list of keys, before the options: withLock(lockKey("payOrder", orderNo), options, body)';

/**
 * Returns the error for an unknown option.
 *
 * @param others names of options that are not for the lock
 */
export function unknownLockOption(name: string, others: readonly string[]): LockOptionError {
  const known = [...others, ...LOCK_OPTIONS].join(", ");
  const fix = KEY_ATTRIBUTES.has(name) ? FIX_OF_KEYS : "";
  return new LockOptionError(`There is no option \`${name}\`. The options are ${known}${fix}`);
}

/**
 * Returns `defaults`, overridden by the options.
 *
 * @param own the result of `readOptions`
 * @param others names of options that the caller reads itself
 * @throws {LockOptionError} if an option has an invalid value
 */
export function settle(own: object, defaults: Settings, others: readonly string[] = []): Settings {
  const isOwn = ({ name }: { readonly name: string }): boolean =>
    (own as Readonly<Record<string, unknown>>)[name] !== undefined;
  const settings = { ...defaults, ...(replacedBy(isOwn).includes("wait") && { waitMs: undefined }) };
  for (const [name, value] of Object.entries(own)) {
    if (others.includes(name) || value === undefined) continue;
    const option = name as OptionName;
    Object.assign(settings, { [settingName(option)]: checked(name, LOCK_ATTRIBUTES[option], value) });
  }
  const { mode, permits: most } = own as LockOptions;
  if (mode !== undefined && most !== undefined) {
    throw new LockOptionError(
      `Expected either \`mode\` or \`permits\`, got ${formatValue(mode)} and ${formatValue(most)}`,
    );
  }
  const complete = withInterval(withSharing(settings));
  assertCompatible(complete, { isOwn });
  return complete;
}

/**
 * Returns the options of a tag with the project's default for each one that is `undefined`, as if the tag did not have that attribute.
 *
 * @param projectDefaults the defaults as the transformer writes them: `lockTime=30s permits=3`
 */
export function withProjectDefaults<Options extends object>(
  options: Options,
  projectDefaults: string,
): Options {
  if (!Object.values(options).includes(undefined)) return options;
  const own = new Map<string, unknown>(Object.entries(options));
  const isOwn = ({ name }: { readonly name: string }): boolean => own.get(name) !== undefined;
  const replaced: readonly string[] = replacedBy(isOwn);
  const defaults = projectDefaults
    .split(" ")
    .map((text) => text.split("="))
    .filter(([name = ""]) => !isOwn({ name }) && !replaced.includes(name))
    .map(([name = "", value = ""]) => [name, /^\d+$/.test(value) ? Number(value) : value] as const);
  return Object.assign({}, options, Object.fromEntries(defaults));
}

/**
 * Returns the settings that locks use by default.
 *
 * @param defaults the `defaults` of `configure()`
 * @throws {LockOptionError} as {@link settle} does, and if an option cannot be a default
 */
export function settleDefaults(defaults: unknown): Settings {
  if (!isOptions(defaults)) {
    throw new LockOptionError(
      `Expected \`defaults\` to be an object such as { lockTime: "30s" }, got ${formatValue(defaults)}`,
    );
  }
  const own = readOptions(defaults, LOCK_OPTIONS, (name) => unknownLockOption(name, []));
  for (const [name, { preset }] of ROWS) {
    if (preset !== undefined && name in own) {
      throw new LockOptionError(
        `\`${name}\` cannot be a default of configure(), because ${NO_DEFAULT[preset]}`,
      );
    }
  }
  return settle(own, DEFAULTS);
}

/** The reasons why `configure()` has no default for an attribute. */
const NO_DEFAULT = {
  plugin:
    "it changes the woven code. Set it in the tag, in the options of withLock(), or in the plugin's `defaults` in tsconfig.json",
  nowhere: "it applies to one lock. Set it in the tag, or in the options of withLock()",
};

/** Sets the permits of readers. */
function withSharing(settings: Settings): Settings {
  const { mode, permits: most, fencing } = settings;
  if (fencing && (mode === "read" || most > 1)) {
    throw new LockOptionError(
      `\`fencing\` needs an exclusive lock, but this lock has ${sharingOf(settings)}. Fencing tokens order holders, but here several hold the lock at once. Fix: remove one of them`,
    );
  }
  return mode === "read" ? { ...settings, permits: UNLIMITED } : settings;
}

/** Sets the time between two checks, if there is a wait budget and the defaults have no such time. */
function withInterval(settings: Settings): Settings {
  if (settings.waitMs === undefined || settings.waitTimeMs > 0) return settings;
  return { ...settings, waitTimeMs: DEFAULTS.waitTimeMs };
}

/** @throws {LockOptionError} if a lock of several keys cannot have these settings */
export function assertForEach(settings: Settings): void {
  assertCompatible(settings, { each: true });
}

/**
 * Checks that options which are valid alone can be combined.
 *
 * @param isOwn whether the lock itself gives the option, and not the defaults
 */
function assertCompatible(
  settings: Settings,
  { each = false, isOwn = () => false }: { each?: boolean; isOwn?: (option: { name: string }) => boolean },
): void {
  const { lockTimeMs, lockAtLeastMs, holdAtMostMs } = settings;
  if (holdAtMostMs < lockTimeMs) {
    throw new LockOptionError(
      `Expected \`holdAtMost\` to be at least \`lockTime\`, got ${holdAtMostMs} ms for a lock time of ${lockTimeMs} ms`,
    );
  }
  if (lockAtLeastMs > lockTimeMs) {
    throw new LockOptionError(
      `Expected \`lockAtLeast\` to be at most \`lockTime\`, got ${lockAtLeastMs} ms for a lock time of ${lockTimeMs} ms. The lock of a dead process expires after its lock time`,
    );
  }
  const given: Readonly<Record<string, unknown>> = { ...settings, each };
  const isGiven = ({ name, value }: { readonly name: string; readonly value?: string }): boolean => {
    if (value !== undefined) return String(given[name]) === value;
    if (!Object.hasOwn(LOCK_ATTRIBUTES, name)) return false;
    const setting = settingName(name as OptionName);
    return settings[setting] !== DEFAULTS[setting];
  };
  const [pair] = refusedAmong(isGiven, isOwn);
  if (pair === undefined) return;
  const { one, other, because } = pair;
  throw new LockOptionError(
    `\`${formatAttribute(one)}\` and \`${formatAttribute(other)}\` cannot be combined: ${because}`,
  );
}
