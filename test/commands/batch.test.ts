import test from "ava";
import { Batch, InFlight, NEVER_DUE, NoReplyError, type Command } from "../../runtime/commands/in-flight";
import { MOST_AT_ONCE } from "../../runtime/stores/port";
import { deferred, type Deferred } from "../support/deferred";
import { VirtualClock } from "../support/virtual-clock";

const SECOND = 1_000;

/** Notes what it is told. */
class Noting implements Command<string> {
  timeoutMs = 0;
  dueAt = NEVER_DUE;
  readonly name: string;
  readonly told: string[] = [];

  constructor(name: string) {
    this.name = name;
  }

  send(): Promise<string> {
    return Promise.resolve(`${this.name} alone`);
  }

  read(reply: unknown): string {
    if (typeof reply === "string") return reply;
    throw new Error(`no reply: ${String(reply)}`);
  }

  onReply(reply: string): void {
    if (reply === "fault") throw new Error("a fault");
    this.told.push(`heard ${reply}`);
  }

  onFailure(error: unknown): void {
    this.told.push(`failed ${error instanceof NoReplyError ? "for want of a reply" : String(error)}`);
  }

  onLateReply(reply: string): void {
    this.told.push(`heard late ${reply}`);
  }
}

interface Bench {
  readonly clock: VirtualClock;
  /** Sends so many in one turn. */
  send(count: number, mostMs?: number): Noting[];
  /** How many went together each time, and how each is answered. */
  readonly together: { readonly names: readonly string[]; readonly answer: Deferred<(string | Error)[]> }[];
}

function bench(): Bench {
  const clock = new VirtualClock();
  const together: Bench["together"] = [];
  const batch = new Batch<Noting, string>(new InFlight(clock, SECOND), (commands) => {
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

const told = (commands: readonly Noting[]): string[][] => commands.map((command) => command.told);

test("what is alone in its turn is sent by itself", async (t) => {
  const { clock, send, together } = bench();
  const first = send(1);
  await clock.settle();
  const second = send(1);
  await clock.settle();
  t.deepEqual([...told(first), ...told(second)], [["heard 0 alone"], ["heard 0 alone"]]);
  t.deepEqual(together, []);
  t.is(clock.pendingTimers, 0);
});

test("of those sent together each hears its own reply, or its own error", async (t) => {
  const { clock, send, together } = bench();
  const commands = send(3);
  await clock.settle();
  t.deepEqual(
    together.map(({ names }) => names),
    [["0", "1", "2"]],
  );
  together[0]?.answer.resolve(["yes", new Error("no"), "maybe"]);
  await clock.settle();
  t.deepEqual(told(commands), [["heard yes"], ["failed Error: no"], ["heard maybe"]]);
  t.is(clock.pendingTimers, 0);
});

test("more than go together go in several, and one that is left over by itself", async (t) => {
  const { clock, send, together } = bench();
  const commands = send(32 + 2 * MOST_AT_ONCE + 1);
  await clock.settle();
  t.deepEqual(
    together.map(({ names }) => names.length),
    [32, MOST_AT_ONCE, MOST_AT_ONCE],
  );
  t.deepEqual(commands.at(-1)?.told, [`heard ${commands.length - 1} alone`]);
});

test("of many the first are sent at once where the store has nothing to do, and the others as they meet", async (t) => {
  const { clock, send, together } = bench();
  const sizes = (): number[] => together.map(({ names }) => names.length);
  send(31);
  t.deepEqual(sizes(), [], "not yet");
  await clock.settle();
  t.deepEqual(sizes(), [31]);
  send(40);
  t.deepEqual(sizes(), [31], "it is at work");
  await clock.settle();
  t.deepEqual(sizes(), [31, 40]);
  for (const { answer } of together) answer.reject(new Error("connection refused"));
  await clock.settle();
  const commands = send(40);
  t.deepEqual(sizes(), [31, 40, 32], "it is not at work any more");
  await clock.settle();
  t.deepEqual(sizes(), [31, 40, 32, 8]);
  together[2]?.answer.resolve(Array.from({ length: 32 }, () => "yes"));
  together[3]?.answer.resolve(Array.from({ length: 8 }, () => "no"));
  await clock.settle();
  t.deepEqual(
    told(commands),
    commands.map((_, nth) => [nth < 32 ? "heard yes" : "heard no"]),
  );
});

test("an error of all is the error of each", async (t) => {
  const { clock, send, together } = bench();
  const commands = send(2);
  await clock.settle();
  together[0]?.answer.reject(new Error("connection refused"));
  await clock.settle();
  t.deepEqual(told(commands), [["failed Error: connection refused"], ["failed Error: connection refused"]]);
});

test("a store that sends too few replies fails those that have none", async (t) => {
  const { clock, send, together } = bench();
  const commands = send(2);
  await clock.settle();
  together[0]?.answer.resolve(["yes"]);
  await clock.settle();
  t.deepEqual(told(commands), [["heard yes"], ["failed Error: the store sent fewer replies than expected"]]);
});

test("each of those sent together has its own time-out, and hears a late reply as late", async (t) => {
  const { clock, send, together } = bench();
  const hasty = send(1, 200);
  const patient = send(1);
  await clock.advance(199);
  t.deepEqual(told(hasty), [[]]);
  await clock.advance(1);
  t.deepEqual(told(hasty), [["failed for want of a reply"]]);
  together[0]?.answer.resolve(["yes", "yes"]);
  await clock.settle();
  t.deepEqual(told(hasty), [["failed for want of a reply", "heard late yes"]]);
  t.deepEqual(told(patient), [["heard yes"]]);
  t.is(clock.pendingTimers, 0);
});
