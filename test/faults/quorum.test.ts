import { setTimeout as pause } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { Redis } from "ioredis";
import { LockUnreachableError, type Duration } from "../../runtime";
import { systemClock } from "../../runtime/base/clock";
import type { Lock } from "../../runtime/lock/lock";
import { QuorumStore } from "../../runtime/stores/quorum/quorum";
import { quorumStore } from "../../runtime/stores/quorum/quorum-store";
import { redisMasters } from "../../runtime/stores/quorum/redis-member";
import { IoredisLibrary } from "../../runtime/stores/redis/ioredis/library";
import { Arena, type Contender } from "../support/arena";
import { FleetProcess } from "../support/fleet";
import { Masters } from "../support/masters";
import { monotonicMs } from "../support/monotonic";
import { judge, type Section } from "../support/sections";
import { inRounds } from "../support/suites";
import { until } from "../support/until";

// A quorum of five real masters under faults. `QUORUM_ROUNDS=20` plays each fault 20 times.

const ROUNDS = Number(process.env["QUORUM_ROUNDS"] ?? 1);

const LOCK_TIME_MS = 500;
/** A restarted master does not count for this long. */
const LONGEST_LOCK_TIME_MS = 1_000;
/** Processes are compiled as they start, and may get no CPU for a long time. */
const STARTED_BY_MS = 180_000;
/** All faults once, on a machine that is busy with other tests. */
const ROUND_WITHIN_MS = 100_000;

let masters: Masters;

test.before(async () => {
  masters = await Masters.start(5);
});

test.after.always(() => masters.stop());

interface Battle {
  readonly contenders: readonly Contender[];
  /** Returns the number of bodies that have entered. */
  readonly sections: () => number;
}

const untilAllCount = (longestLockTimeMs = LONGEST_LOCK_TIME_MS): Promise<void> =>
  pause(longestLockTimeMs + 100);

/** Waits until more bodies have entered. */
async function moreBodiesEnter({ sections }: Battle): Promise<void> {
  const before = sections();
  await until(() => sections() > before + 3);
}

/** Each fault ends when the masters have recovered. */
const FAULTS: Record<string, (battle: Battle, round: number) => Promise<void>> = {
  async "two of five die"(battle, round) {
    const two = [round % 5, (round + 1) % 5];
    await masters.kill(...two);
    await moreBodiesEnter(battle);
    await masters.revive(...two);
    await untilAllCount();
  },
  async "two of five hang"(battle, round) {
    const two = [round % 5, (round + 2) % 5];
    masters.hang(...two);
    await moreBodiesEnter(battle);
    await pause(1.6 * LOCK_TIME_MS);
    await moreBodiesEnter(battle);
    masters.moveOn(...two);
  },
  async "two of five come and go"(battle, round) {
    const [one, other] = [round % 5, (round + 1) % 5];
    for (let n = 0; n < 3; n += 1) {
      await masters.kill(one);
      masters.hang(other);
      await pause(100);
      await masters.revive(one);
      masters.moveOn(other);
      await pause(50);
    }
    await moreBodiesEnter(battle);
    await untilAllCount();
  },
  async "two of five are restarted empty under a long body"(battle, round) {
    await battle.contenders[round % 2]?.inLongBody();
    await masters.restart(round % 5, (round + 1) % 5);
    await moreBodiesEnter(battle);
    await untilAllCount();
  },
  async "three of five die, and come back empty"(battle, round) {
    const three = [round % 5, (round + 1) % 5, (round + 3) % 5];
    await masters.kill(...three);
    await pause(LOCK_TIME_MS);
    await masters.revive(...three);
    await untilAllCount();
    await moreBodiesEnter(battle);
  },
  async "a process cannot reach the first three"(battle, round) {
    const proxies = battle.contenders[round % 2]?.proxies.slice(0, 3) ?? [];
    for (const proxy of proxies) proxy.blackHole();
    await moreBodiesEnter(battle);
    await pause(1.6 * LOCK_TIME_MS);
    for (const proxy of proxies) proxy.heal();
    await moreBodiesEnter(battle);
  },
  async "the processes cannot reach different ones"(battle) {
    const cut = [
      battle.contenders[0]?.proxies.slice(0, 2) ?? [],
      battle.contenders[1]?.proxies.slice(3) ?? [],
    ].flat();
    for (const proxy of cut) proxy.blackHole();
    await moreBodiesEnter(battle);
    for (const proxy of cut) proxy.heal();
  },
};

inRounds("QUORUM_ROUNDS")(
  "no two bodies ever trust the same lock at once, whatever happens to the masters",
  async (t) => {
    t.timeout(STARTED_BY_MS + ROUNDS * ROUND_WITHIN_MS);
    const arena = new Arena(masters, {
      key: "LOCK_quorum",
      callers: 3,
      lockTimeMs: LOCK_TIME_MS,
      longestLockTimeMs: LONGEST_LOCK_TIME_MS,
      restMs: 20,
    });
    t.teardown(() => arena.clear());
    const battle: Battle = {
      contenders: await Promise.all([arena.add(), arena.add()]),
      sections: () => arena.sections.length,
    };
    await moreBodiesEnter(battle);
    for (const [name, strike] of Object.entries(FAULTS)) {
      const [before, startedAt] = [arena.sections.length, monotonicMs()];
      for (let round = 0; round < ROUNDS; round += 1) await strike(battle, round);
      t.log(
        `${name}, ${ROUNDS} times: ${arena.sections.length - before} sections in ${Math.round(monotonicMs() - startedAt)} ms`,
      );
    }
    t.deepEqual(await arena.end(), ["0", "0"]);
    const { sections, overlaps, signaledBefore, unannounced, fallenTokens } = judge(arena.sections);
    t.log(
      `${sections} sections, ${overlaps} overlaps, ${signaledBefore} announced, ${unannounced.length} unannounced`,
    );
    t.deepEqual(unannounced, []);
    t.deepEqual(fallenTokens, []);
    t.false(arena.sections.some(({ missedSignal }) => missedSignal));
    const unexpected = arena.failures.filter((code) => code !== "LOCK_LOST" && code !== "LOCK_UNREACHABLE");
    t.deepEqual(unexpected, []);
  },
);

interface Settings {
  readonly majority?: number;
  readonly longestLockTimeMs?: number;
  readonly commandTimeout?: Duration;
}

function processAt(t: ExecutionContext, urls: readonly string[], settings: Settings = {}): FleetProcess {
  const { majority, longestLockTimeMs = LONGEST_LOCK_TIME_MS, commandTimeout = "400ms" } = settings;
  const store =
    majority === undefined
      ? quorumStore(urls, { longestLockTime: `${longestLockTimeMs}ms` })
      : new QuorumStore(
          redisMasters(urls).open(new Map([[undefined, new IoredisLibrary(Redis)]])),
          systemClock,
          longestLockTimeMs,
          majority,
        );
  t.teardown(() => store.close());
  return new FleetProcess({ store, commandTimeout, logger: { warn() {} } });
}

/** For a call that fails. */
const OPTIONS = { lockTime: "500ms", waitTime: "400ms", retryTimes: 1 } as const;
/** For a call that succeeds, however busy the machine is. */
const PATIENT = { lockTime: "500ms", waitTime: "100s" } as const;

test.serial(
  "a call fails within its budget while three of five masters are dead, and works afterwards",
  async (t) => {
    t.timeout(STARTED_BY_MS);
    await untilAllCount();
    const process = processAt(t, masters.urls);
    t.is(await process.call("LOCK_a", PATIENT, () => "in"), "in");
    await masters.kill(0, 2, 4);
    const startedAt = monotonicMs();
    const error = await t.throwsAsync(
      process.call("LOCK_a", OPTIONS, () => "in"),
      {
        instanceOf: LockUnreachableError,
        message: /of 5 masters agreed, but 3 must/,
      },
    );
    t.log(`${error?.message} (after ${Math.round(monotonicMs() - startedAt)} ms)`);
    await masters.revive(0, 2, 4);
    const cautious = processAt(t, masters.urls, { longestLockTimeMs: 600_000 });
    await t.throwsAsync(
      cautious.call("LOCK_a", { ...OPTIONS, waitTime: "3s" }, () => "in"),
      {
        instanceOf: LockUnreachableError,
        message: /it started recently/,
      },
    );
    await untilAllCount();
    t.is(await process.call("LOCK_a", PATIENT, () => "in"), "in");
  },
);

test.serial("a renewed lock survives the restart of one master after the other", async (t) => {
  t.timeout(STARTED_BY_MS);
  const lockTimeMs = 4_000; // The machine may be busy with other tests for this long.
  await untilAllCount(lockTimeMs);
  const process = processAt(t, masters.urls, { longestLockTimeMs: lockTimeMs, commandTimeout: "2s" });
  await process.call("LOCK_b", { ...PATIENT, lockTime: `${lockTimeMs}ms` }, async (lock) => {
    for (const n of [0, 2, 4]) {
      await masters.restart(n);
      await untilAllCount(lockTimeMs);
      const client = masters.server(n).client();
      await until(async () => (await client.exists("LOCK_b")) === 1); // A renewal has restored the hold on it.
      lock.assertHeld();
    }
  });
  t.pass();
});

/**
 * Runs two processes that see different masters, and returns the bodies that entered.
 *
 * @param waitTimeMs how long the process that sees two masters waits for the lock, and each body for the other
 */
async function apart(t: ExecutionContext, majority: number, waitTimeMs: number): Promise<Section[]> {
  await untilAllCount();
  const nobody = ["redis://127.0.0.1:1/1", "redis://127.0.0.1:1/2", "redis://127.0.0.1:1/3"];
  const [a = "", b = "", c = "", d = "", e = ""] = masters.urls;
  const processes = [
    processAt(t, [a, b, ...nobody], { majority }),
    processAt(t, [...nobody.slice(0, 2), c, d, e], { majority }),
  ];
  const sections: Section[] = [];
  let inside = 0;
  const body = async (lock: Lock): Promise<void> => {
    const enteredAt = monotonicMs();
    inside += 1;
    await until(() => inside === 2, waitTimeMs).catch(() => {}); // The other body may never start.
    const leftAt = monotonicMs();
    sections.push({ name: lock.requestId, enteredAt, leftAt, believedUntil: leftAt + lock.remaining() });
  };
  const waitTimesMs = [waitTimeMs, 100_000];
  await Promise.allSettled(
    processes.map((process, n) =>
      process.call("LOCK_c", { lockTime: "500ms", waitTime: `${waitTimesMs[n] ?? 0}ms` }, body),
    ),
  );
  return sections;
}

test.serial("only the process that sees a majority of the masters enters", async (t) => {
  t.is((await apart(t, 3, 3_000)).length, 1);
});

test.serial("judge() finds a quorum that counts two of five masters as a majority", async (t) => {
  t.is(judge(await apart(t, 2, 60_000)).unannounced.length, 1);
});
