import test from "ava";
import { NoReplyError } from "../../runtime/base/no-reply-error";
import { CommandBatch, InFlight, StoreCommand } from "../../runtime/commands/in-flight";
import { MOST_AT_ONCE } from "../../runtime/stores/port";
import { deferred, type Deferred } from "../support/deferred";
import { VirtualClock } from "../support/virtual-clock";

const SECOND = 1_000;

/** Records its outcome. */
class Noting extends StoreCommand<string> {
  readonly name: string;
  readonly outcomes: string[] = [];

  constructor(name: string) {
    super();
    this.name = name;
  }

  send(): Promise<string> {
    return Promise.resolve(`${this.name} alone`);
  }

  onReply(reply: string): void {
    if (reply === "fault") throw new Error("a fault");
    this.outcomes.push(`heard ${reply}`);
  }

  onFailure(error: unknown): void {
    this.outcomes.push(`failed ${error instanceof NoReplyError ? "for want of a reply" : String(error)}`);
  }

  onLateReply(reply: string): void {
    this.outcomes.push(`heard late ${reply}`);
  }
}

interface Bench {
  readonly clock: VirtualClock;
  /** Sends `count` commands in one turn. */
  send(count: number, mostMs?: number): Noting[];
  /** The commands of each batch, and the answer to it. */
  readonly together: { readonly names: readonly string[]; readonly answer: Deferred<(string | Error)[]> }[];
}

function bench(): Bench {
  const clock = new VirtualClock();
  const together: Bench["together"] = [];
  const batch = new CommandBatch<Noting, string>(new InFlight(clock, SECOND), (commands) => {
    const answer = deferred<(string | Error)[]>();
    together.push({ names: commands.map(({ name }) => name), answer });
    return answer.promise;
  });
  return {
    clock,
    together,
    send(count, mostMs) {
      const commands = Array.from({ length: count }, (_, index) => new Noting(String(index)));
      for (const command of commands) batch.send(command, mostMs);
      return commands;
    },
  };
}

const outcomes = (commands: readonly Noting[]): string[][] => commands.map((command) => command.outcomes);

test("sends the only command of a turn without a batch", async (t) => {
  const { clock, send, together } = bench();
  const first = send(1);
  await clock.settle();
  const second = send(1);
  await clock.settle();
  t.deepEqual([...outcomes(first), ...outcomes(second)], [["heard 0 alone"], ["heard 0 alone"]]);
  t.deepEqual(together, []);
  t.is(clock.pendingTimers, 0);
});

test("each command in a batch receives its own reply or its own error", async (t) => {
  const { clock, send, together } = bench();
  const commands = send(3);
  await clock.settle();
  t.deepEqual(
    together.map(({ names }) => names),
    [["0", "1", "2"]],
  );
  together[0]?.answer.resolve(["yes", new Error("no"), "maybe"]);
  await clock.settle();
  t.deepEqual(outcomes(commands), [["heard yes"], ["failed Error: no"], ["heard maybe"]]);
  t.is(clock.pendingTimers, 0);
});

test("splits commands above the batch limit into several batches, and sends a single leftover by itself", async (t) => {
  const { clock, send, together } = bench();
  const commands = send(32 + 2 * MOST_AT_ONCE + 1);
  await clock.settle();
  t.deepEqual(
    together.map(({ names }) => names.length),
    [32, MOST_AT_ONCE, MOST_AT_ONCE],
  );
  t.deepEqual(commands.at(-1)?.outcomes, [`heard ${commands.length - 1} alone`]);
});

test("sends a full first batch immediately if the store is idle, and the rest at the end of the turn", async (t) => {
  const { clock, send, together } = bench();
  const sizes = (): number[] => together.map(({ names }) => names.length);
  send(31);
  t.deepEqual(sizes(), [], "not yet");
  await clock.settle();
  t.deepEqual(sizes(), [31]);
  send(40);
  t.deepEqual(sizes(), [31], "the store is busy");
  await clock.settle();
  t.deepEqual(sizes(), [31, 40]);
  for (const { answer } of together) answer.reject(new Error("connection refused"));
  await clock.settle();
  const commands = send(40);
  t.deepEqual(sizes(), [31, 40, 32], "the store is idle again");
  await clock.settle();
  t.deepEqual(sizes(), [31, 40, 32, 8]);
  together[2]?.answer.resolve(Array.from({ length: 32 }, () => "yes"));
  together[3]?.answer.resolve(Array.from({ length: 8 }, () => "no"));
  await clock.settle();
  t.deepEqual(
    outcomes(commands),
    commands.map((_, nth) => [nth < 32 ? "heard yes" : "heard no"]),
  );
});

test("each command in a batch fails with the error of the batch", async (t) => {
  const { clock, send, together } = bench();
  const commands = send(2);
  await clock.settle();
  together[0]?.answer.reject(new Error("connection refused"));
  await clock.settle();
  t.deepEqual(outcomes(commands), [
    ["failed Error: connection refused"],
    ["failed Error: connection refused"],
  ]);
});

test("a command fails if the store sends too few replies and none for it", async (t) => {
  const { clock, send, together } = bench();
  const commands = send(2);
  await clock.settle();
  together[0]?.answer.resolve(["yes"]);
  await clock.settle();
  t.deepEqual(outcomes(commands), [
    ["heard yes"],
    ["failed Error: the store sent fewer replies than expected"],
  ]);
});

test("each command in a batch has its own timeout, and handles a later reply as late", async (t) => {
  const { clock, send, together } = bench();
  const hasty = send(1, 200);
  const patient = send(1);
  await clock.advance(199);
  t.deepEqual(outcomes(hasty), [[]]);
  await clock.advance(1);
  t.deepEqual(outcomes(hasty), [["failed for want of a reply"]]);
  together[0]?.answer.resolve(["yes", "yes"]);
  await clock.settle();
  t.deepEqual(outcomes(hasty), [["failed for want of a reply", "heard late yes"]]);
  t.deepEqual(outcomes(patient), [["heard yes"]]);
  t.is(clock.pendingTimers, 0);
});
