import { LockOptionError } from "./errors";
import { inRoot } from "./root-context";
import { formatValue } from "./format-value";

/** Receives log lines, such as `console`. It may be asynchronous: the runtime does not wait for it. */
export interface Logger {
  /** Each step of a lock: who waits, who holds, who released. */
  debug?(message: string): void;
  /** What a person should know: a lost lock, or a release without a reply. */
  warn(message: string): void;
}

/** @throws {LockOptionError} when it is none */
export function assertLogger(logger: Logger): void {
  if (typeof logger !== "object" || logger === null || typeof logger.warn !== "function") {
    throw new LockOptionError(`Expected \`logger\` to have a function \`warn\`, got ${formatValue(logger)}`);
  }
  if (logger.debug !== undefined && typeof logger.debug !== "function") {
    throw new LockOptionError(`Expected \`logger.debug\` to be a function, got ${formatValue(logger.debug)}`);
  }
}

/** A logger that never fails, and gets each message as one line in which nothing steers a terminal. */
export interface SafeLogger extends Logger {
  /** Warns, unless this very text was warned of before. */
  warnOnce(message: string): void;
}

/** Texts that differ each time would otherwise pile up; beyond it, what was said long ago is said again. */
const MOST_REMEMBERED = 1_000;

/** Whatever the logger does (throw, reject, never settle), it costs nobody a lock or a place in the queue. */
export function safeLogger(logger: Logger): SafeLogger {
  const warned = new Set<string>();
  const warn = (message: string): void => attempt(() => logger.warn(oneLine(message)));
  return {
    ...(logger.debug !== undefined && {
      debug: (message) => attempt(() => logger.debug?.(oneLine(message))),
    }),
    warn,
    warnOnce(message) {
      if (warned.has(message)) return;
      if (warned.size === MOST_REMEMBERED) warned.clear();
      warned.add(message);
      warn(message);
    },
  };
}

/** Warns on the console, where others speak as well, and is silent about the rest. */
export const quietConsole: Logger = { warn: (message) => console.warn(`lockweave: ${message}`) };

/** Runs it in the root context: a message may be about another caller. If it fails, nobody is left to report that to. */
function attempt(tell: () => unknown): void {
  inRoot(() => {
    try {
      const told = tell();
      if (typeof told !== "object" || told === null) return;
      // Not by the `then` or `catch` of what it returned, which may throw.
      new Promise((resolve) => resolve(told)).catch(() => {});
    } catch {
      // As above.
    }
  });
}

/** What is no character to read: controls, line and paragraph separators, and what turns the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu;

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Keys, call sites and errors of others are part of messages: they forge no line, and clear no screen. */
function oneLine(message: string): string {
  return message.replace(UNPRINTABLE, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return SHORT[character] ?? (code.length > 2 ? `\\u${code}` : `\\x${code.padStart(2, "0")}`);
  });
}
