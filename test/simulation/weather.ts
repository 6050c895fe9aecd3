import type { SeededRandom } from "../support/seeded-random";

/** The faults of a world, as probabilities, milliseconds, and maximum counts. */
export interface Weather {
  readonly name: string;
  readonly latencyMs: number;
  /** Whether a later command, or reply, may come before an earlier one. */
  readonly overtaking: boolean;
  /** The probabilities that a command is lost, that a reply is lost, and that a command is refused. */
  readonly lost: number;
  readonly replyLost: number;
  readonly refused: number;
  readonly wakeUpLost: number;
  /** The probability that a command runs a round trip later: NOSCRIPT, MOVED, ASK, TRYAGAIN. */
  readonly detours: number;
  /** The probability that a command runs twice, the second time at any time. */
  readonly duplicated: number;
  /** The probability that a reply is read together with the next one. */
  readonly readTogether: number;
  /** The number of connections of a process. Commands on different connections have no order. */
  readonly connections: number;
  /** How often the connection of a process breaks. */
  readonly breaks: number;
  /** The probabilities that a process crashes, and that it shuts down. Another one replaces it later. */
  readonly crash: number;
  readonly close: number;
  /** How often a process freezes. */
  readonly freezes: number;
  /** How often its machine is suspended. */
  readonly suspensions: number;
  /** How often the server loses its data, and how often it stalls. */
  readonly restarts: number;
  readonly stalls: number;
  /** How often an operator deletes a key. */
  readonly deletions: number;
  /** How often an operator revokes the holds of a key. */
  readonly revocations: number;
  /** The direction in which the server's clock may be set. */
  readonly jumps: "none" | "forward" | "backward" | "both";
  /** The probability that a caller gives up while it waits. */
  readonly abort: number;
  /** The probability that something else happens in the same tick as an action of a caller. */
  readonly sameTick: number;
  /** When all faults end. The world must recover then. */
  readonly clearsAfterMs: number;
}

/** The weather without faults, in which the strictest limits apply. */
const CALM: Weather = {
  name: "calm",
  latencyMs: 3,
  overtaking: false,
  lost: 0,
  replyLost: 0,
  refused: 0,
  wakeUpLost: 0,
  detours: 0,
  duplicated: 0,
  readTogether: 0,
  connections: 1,
  breaks: 0,
  crash: 0,
  close: 0,
  freezes: 0,
  suspensions: 0,
  restarts: 0,
  stalls: 0,
  deletions: 0,
  revocations: 0,
  jumps: "none",
  abort: 0,
  sameTick: 0,
  clearsAfterMs: 0,
};

const BAD = { ...CALM, abort: 0.1, sameTick: 0.2, readTogether: 0.3, clearsAfterMs: 8_000 };

const LOSSY: Weather = {
  ...BAD,
  name: "lossy",
  latencyMs: 120,
  lost: 0.03,
  replyLost: 0.03,
  refused: 0.03,
  wakeUpLost: 0.2,
  crash: 0.3,
  close: 0.1,
  jumps: "both",
};

const STORMY: Weather = {
  ...BAD,
  name: "stormy",
  latencyMs: 400,
  overtaking: true,
  lost: 0.1,
  replyLost: 0.1,
  refused: 0.1,
  wakeUpLost: 0.5,
  breaks: 1,
  crash: 0.3,
  clearsAfterMs: 15_000,
};

const FREEZING: Weather = {
  ...BAD,
  name: "freezing",
  latencyMs: 80,
  replyLost: 0.01,
  wakeUpLost: 0.05,
  crash: 0.1,
  freezes: 6,
  stalls: 2,
};

const BREAKING: Weather = {
  ...BAD,
  name: "breaking",
  latencyMs: 60,
  wakeUpLost: 0.1,
  breaks: 6,
  crash: 0.2,
  close: 0.3,
  stalls: 1,
  jumps: "both",
};

const FORGETFUL: Weather = {
  ...BAD,
  name: "forgetful",
  latencyMs: 30,
  wakeUpLost: 0.05,
  breaks: 1,
  crash: 0.2,
  restarts: 3,
  stalls: 1,
  jumps: "forward", // After a step back and the loss of the last token, no server could keep tokens rising.
};

/** Nothing is lost, and nothing comes in the order in which it was sent. */
const DISORDERLY: Weather = {
  ...BAD,
  name: "disorderly",
  latencyMs: 20,
  overtaking: true,
  wakeUpLost: 0.05,
  detours: 0.3,
  connections: 2,
  close: 0.2,
  abort: 0.3,
  sameTick: 0.5,
  jumps: "backward",
};

/** Commands that were sent once run twice. */
const REPEATING: Weather = {
  ...BAD,
  name: "repeating",
  latencyMs: 60,
  wakeUpLost: 0.1,
  detours: 0.1,
  duplicated: 0.2,
  connections: 2,
  crash: 0.1,
  freezes: 2,
  abort: 0.2,
};

/** Machines are suspended, and operators delete keys or revoke their holds. */
const SLEEPY: Weather = {
  ...BAD,
  name: "sleepy",
  latencyMs: 40,
  wakeUpLost: 0.05,
  replyLost: 0.02,
  suspensions: 3,
  deletions: 2,
  revocations: 3,
  close: 0.2,
};

const WEATHERS = [CALM, LOSSY, STORMY, FREEZING, BREAKING, FORGETFUL, DISORDERLY, REPEATING, SLEEPY] as const;

/** Returns weather with a random choice of faults, so that no fault always hides what another reveals. */
function changeable(random: SeededRandom): Weather {
  const some = <T>(value: T, none: T): T => (random.happens(0.5) ? value : none);
  const restarts = some(2, 0);
  return {
    ...BAD,
    name: "changeable",
    latencyMs: random.oneOf(0, 5, 50, 250),
    overtaking: some(true, false),
    lost: some(0.05, 0),
    replyLost: some(0.05, 0),
    refused: some(0.05, 0),
    wakeUpLost: some(0.3, 0),
    detours: some(0.2, 0),
    duplicated: some(0.1, 0),
    readTogether: some(0.5, 0),
    connections: some(2, 1),
    breaks: some(3, 0),
    crash: some(0.3, 0),
    close: some(0.2, 0),
    freezes: some(3, 0),
    suspensions: some(2, 0),
    restarts,
    stalls: some(2, 0),
    deletions: some(2, 0),
    revocations: some(3, 0),
    sameTick: some(0.4, 0),
    jumps: restarts > 0 ? "forward" : "both",
    clearsAfterMs: random.oneOf(3_000, 8_000, 20_000),
  };
}

/** The kinds of weather. The seeds use them in turn. */
export const KINDS = [...WEATHERS.map(({ name }) => name), "changeable"];

export function weatherOf(seed: number, random: SeededRandom): Weather {
  return WEATHERS[seed % KINDS.length] ?? changeable(random);
}

/** Returns the weather after the end of all faults. */
export function cleared(weather: Weather): Weather {
  return { ...CALM, name: weather.name };
}
