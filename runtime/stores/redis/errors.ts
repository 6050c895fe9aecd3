import { LockMisconfiguredError } from "../errors";

/** Whether the server is too old for `SET ... NX GET`. */
export function isBeforeRedis7(error: unknown): boolean {
  return error instanceof Error && /^ERR .*syntax error/.test(error.message);
}

/** What to do about the replies after which trying again cannot help. */
const ADVICE: Record<string, string> = {
  NOAUTH: "Redis asks for a password: give it to the client",
  WRONGPASS: "Redis refused the password of the client",
  NOPERM: "the Redis user may not run a command that locks need",
  WRONGTYPE: "the key holds other data than a lock: choose another businessFlag",
  CROSSSLOT: "with fencing, a lock key in a cluster must not contain `}` outside a hash tag",
};

/** Before Redis 7, an error inside a script comes in a sentence about the script. */
const REFUSAL = /^(?:ERR Error running script .*?@user_script:\d+: )?([A-Z]+)\b/;

/** Before Redis 7.2, a command that the user may not run inside a script is told without the word NOPERM. */
const DENIED_IN_SCRIPT = /The user executing the script can't/;

/** The error as the runtime is to see it: one that trying again cannot mend says what to do. */
export function wrapped<E>(error: E): E | LockMisconfiguredError {
  if (!(error instanceof Error)) return error;
  const refusal = DENIED_IN_SCRIPT.test(error.message) ? "NOPERM" : REFUSAL.exec(error.message)?.[1];
  const advice = ADVICE[refusal ?? ""];
  if (advice === undefined) return error;
  return new LockMisconfiguredError(`${advice} (${error.message})`, { cause: error });
}
