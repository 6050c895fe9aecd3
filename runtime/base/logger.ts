import { LockOptionError } from "./errors";
import { inRoot } from "./root-context";
import { formatValue } from "./format-value";

/** The fields of a log line, such as `key`, `site`, and `requestId`. Empty if the line is not about one lock. */
export type LogFields = object;

/** Receives log lines. `console` is a logger. Lockweave does not wait for an asynchronous logger. */
export interface Logger {
  /** Receives each step of a lock: wait, hold, and release. `fields` come only if `logFields` is set. */
  debug?(message: string, fields?: LogFields): void;
  /** Receives warnings, such as a lost lock or a release without a reply. `fields` come only if `logFields` is set. */
  warn(message: string, fields?: LogFields): void;
}

/** The position of the fields among the arguments of a logger. */
export type FieldOrder = "first" | "last";

/** @throws {LockOptionError} if it is not a logger */
export function assertLogger(logger: Logger): void {
  if (typeof logger !== "object" || logger === null || typeof logger.warn !== "function") {
    throw new LockOptionError(`Expected \`logger\` to have a function \`warn\`, got ${formatValue(logger)}`);
  }
  if (logger.debug !== undefined && typeof logger.debug !== "function") {
    throw new LockOptionError(`Expected \`logger.debug\` to be a function, got ${formatValue(logger.debug)}`);
  }
}

/** A logger that never throws. It writes each message as one line without control characters for the terminal. */
export interface SafeLogger extends Logger {
  /** Warns, unless it has already warned with the same text. */
  warnOnce(message: string): void;
}

/** The number of remembered warnings. Otherwise texts that differ each time would accumulate. Beyond it, earlier warnings may repeat. */
const MAX_REMEMBERED = 1_000;

/** Returns a logger that protects locks from the given one, which may throw, reject, or never settle. */
export function safeLogger(logger: Logger, order?: FieldOrder): SafeLogger {
  const warned = new Set<string>();
  const own: { warn(...line: unknown[]): void; debug?(...line: unknown[]): void } = logger;
  const lineOf = (message: string, fields: LogFields = {}): readonly unknown[] => {
    const text = oneLine(message);
    if (order === undefined) return [text];
    return order === "first" ? [fields, text] : [text, fields];
  };
  const warn = (message: string, fields?: LogFields): void =>
    attempt(() => own.warn(...lineOf(message, fields)));
  return {
    ...(own.debug !== undefined && {
      debug: (message, fields) => attempt(() => own.debug?.(...lineOf(message, fields))),
    }),
    warn,
    warnOnce(message) {
      if (warned.has(message)) return;
      if (warned.size === MAX_REMEMBERED) warned.clear();
      warned.add(message);
      warn(message);
    },
  };
}

/** A logger that warns on the console and is silent about the rest. The prefix sets its lines apart from those of other code. */
export const quietConsole: Logger = { warn: (message) => console.warn(`lockweave: ${message}`) };

/**
 * Calls the logger in the root context, because a message may be about another caller. If the logger fails, there is nobody to report that
 * to.
 */
function attempt(call: () => unknown): void {
  inRoot(() => {
    try {
      const result = call();
      if (typeof result !== "object" || result === null) return;
      // `new Promise` and not the `then` or `catch` of the returned value, which may throw.
      new Promise((resolve) => resolve(result)).catch(() => {});
    } catch {
      // There is nobody to report this to.
    }
  });
}

/** Characters that are not readable: controls, line and paragraph separators, and those that change the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu;

const SHORT_ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/**
 * Escapes unreadable characters. Messages contain keys, call sites, and errors of others, which must not forge a line or clear the screen.
 */
function oneLine(message: string): string {
  return message.replace(UNPRINTABLE, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return SHORT_ESCAPES[character] ?? (code.length > 2 ? `\\u${code}` : `\\x${code.padStart(2, "0")}`);
  });
}
