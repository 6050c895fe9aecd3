/** A command that a client has sent. */
export interface SentCommand {
  /** In any case. */
  readonly name: string;
  readonly args: readonly unknown[];
}

const SECONDS = 1_000;

/** The position of the timeout among the arguments, and its unit in milliseconds: https://redis.io/docs/latest/commands/ */
const TIMEOUTS: Readonly<Record<string, readonly [position: number, unitMs: number]>> = {
  blmove: [-1, SECONDS],
  blmpop: [0, SECONDS],
  blpop: [-1, SECONDS],
  brpop: [-1, SECONDS],
  brpoplpush: [-1, SECONDS],
  bzmpop: [0, SECONDS],
  bzpopmax: [-1, SECONDS],
  bzpopmin: [-1, SECONDS],
  wait: [-1, 1],
  waitaof: [-1, 1],
};

/** Returns how long the command may block its connection, in milliseconds. `Infinity` for a timeout of 0, and 0 if it does not block. */
export function blockingMsOf(command: SentCommand): number {
  const name = command.name.toLowerCase();
  const args = command.args.map((arg) => String(arg).toLowerCase());
  const ofStream = name.startsWith("xread") && args.includes("block") ? args.indexOf("block") + 1 : undefined;
  const [position, unitMs] = ofStream === undefined ? (TIMEOUTS[name] ?? []) : [ofStream, 1];
  if (position === undefined || unitMs === undefined) return 0;
  const timeout = Number(args.at(position));
  return timeout === 0 ? Infinity : timeout * unitMs;
}
