import type { ReleaseRequest, AcquireRequest } from "../port";
import { translateError } from "./errors";
import { TOO_FEW } from "./replies";
import type { Script } from "./scripts/script";

// Commands for several requests at once.

export type Command = readonly [name: string, ...args: (string | number)[]];

export function single<Request>(
  requests: readonly Request[],
  command: (only: Request) => Command,
): Command | undefined {
  const [only] = requests;
  return requests.length === 1 && only !== undefined ? command(only) : undefined;
}

export function setOf({ key, requestId, lockTimeMs }: AcquireRequest): Command {
  return ["set", key, requestId, "PX", lockTimeMs, "NX", "GET"];
}

/** @param more further keys, after those of the requests */
export function scriptFor(
  { sha1 }: Script,
  requests: readonly (ReleaseRequest & { readonly lockTimeMs?: number })[],
  more: readonly string[] = [],
  args: readonly (string | number)[] = requests.map(({ lockTimeMs = 0 }) => lockTimeMs),
): Command {
  const keys = [...requests.map(({ key }) => key), ...more];
  return ["evalsha", sha1, keys.length, ...keys, idsOf(requests), ...args];
}

export function idsOf(requests: readonly { readonly requestId: string }[]): string {
  return requests.map(({ requestId }) => requestId).join("");
}

export function lockTimesOf(requests: readonly { readonly lockTimeMs: number }[]): number[] {
  const times = requests.map(({ lockTimeMs }) => lockTimeMs);
  return times.every((time) => time === times[0]) ? times.slice(0, 1) : times;
}

export async function eachAlone<Request, Reply>(
  requests: readonly Request[],
  ask: (request: Request) => Promise<Reply>,
): Promise<(Reply | Error)[]> {
  return (await Promise.allSettled(requests.map(ask))).map(settledOrError);
}

export function settledOrError<Reply>(settled: PromiseSettledResult<Reply>): Reply | Error {
  return settled.status === "fulfilled" ? settled.value : translateError(settled.reason);
}

/** Returns the reply to a request that was sent as a list of one, or throws its error. */
export async function onlyOne<Reply>(replies: Promise<readonly (Reply | Error)[]>): Promise<Reply> {
  const [reply = TOO_FEW] = await replies;
  if (reply instanceof Error) throw reply;
  return reply;
}
