import { LockMisconfiguredError } from "../../errors";
import { BAD_COUNTER } from "./scripts/token";

/** Whether the server is too old for `SET ... NX GET`. */
export function isBeforeRedis7(error: unknown): boolean {
  return error instanceof Error && /^ERR .*syntax error/.test(error.message);
}

/** Whether the server does not know the script: it never carried it out. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

/** Whether the server is too old for the command. */
export function isUnknownCommand(error: unknown): boolean {
  return error instanceof Error && /^ERR unknown command/i.test(error.message);
}

/** Whether the key's slot, or the channel's, is with another node of the cluster. */
export function isMoved(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("MOVED ");
}

/** Whether a server said something without having been asked, as ioredis tells it that does not expect that. */
export function isUnaskedReply(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("Command queue state error");
}

/** Whether the user may not do what was asked for. */
export function isDenied(error: unknown): boolean {
  return error instanceof Error && refusalOf(error) === "NOPERM";
}

/** Whether the key holds other data than text. */
export function isWrongType(error: unknown): boolean {
  return error instanceof Error && refusalOf(error) === "WRONGTYPE";
}

/** What to do about the replies after which trying again cannot help. */
const ADVICE: Record<string, string> = {
  NOAUTH: "Redis asks for a password: give it to the client",
  WRONGPASS: "Redis refused the password of the client",
  NOPERM: "the Redis user may not run a command that locks need, or not on this key",
  WRONGTYPE: "the key holds other data than a lock: choose another businessFlag",
  [BAD_COUNTER]:
    "the counter of the lock's fencing tokens holds what Lockweave did not write. Fix: find out who wrote it, then delete that key: new tokens start from the server's time",
  CROSSSLOT: "with fencing, a lock key in a cluster must not contain `}` outside a hash tag",
};

/** Before Redis 7, an error inside a script comes in a sentence about the script. */
const REFUSAL = /^(?:ERR )?(?:.*?@?user_script: ?\d+: )?-?([A-Z]+)\b/;

/** What the user may not do inside a script is told without the word NOPERM: by Redis 7.0, and by later ones. */
const DENIED_IN_SCRIPT = /The user executing the script can't|ACL failure in script/;

function refusalOf({ message }: Error): string | undefined {
  return DENIED_IN_SCRIPT.test(message) ? "NOPERM" : REFUSAL.exec(message)?.[1];
}

/** The error as the runtime is to see it: one that trying again cannot mend says what to do. */
export function wrapped(thrown: unknown): Error {
  if (thrown instanceof LockMisconfiguredError) return thrown;
  const error = withoutArguments(thrown instanceof Error ? thrown : new Error(String(thrown)));
  const advice = ADVICE[refusalOf(error) ?? ""];
  if (advice === undefined) return error;
  return new LockMisconfiguredError(`${advice} (${error.message})`, { cause: error });
}

/** The client hangs the command on an error reply, and with it the password that AUTH or HELLO was sent with. */
function withoutArguments(error: Error): Error {
  if (!("command" in error)) return error;
  const copy = new Error(error.message);
  copy.name = error.name;
  if (error.stack !== undefined) copy.stack = error.stack;
  return copy;
}
