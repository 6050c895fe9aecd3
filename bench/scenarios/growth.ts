import { Crew } from "../crew";
import { judgeOneKey, type Judgement } from "../referee";
import { LOCK_TIME_MS, type Scenario } from "./scenario";

export const GROWTH_CLIENTS = [2, 8, 32, 128] as const;
const PROCESSES = 4;
type Clients = (typeof GROWTH_CLIENTS)[number];

/**
 * Measures the cost of a crowd of clients. All request the key at the same moment, and each acquires it once. So each grant is a hand-off
 * between clients, and no client looks good by serving itself. A client is one connection with one runtime of the library. The clients are
 * spread over a few processes.
 */
export const growth: Scenario<`commands${Clients}` | `gap${Clients}`> = {
  name: "growth",
  title: "n clients want one key at once, for 1.2 ms each",
  figures: {
    commands2: commands(2),
    commands8: commands(8),
    commands32: commands(32),
    commands128: commands(128),
    gap2: gap(2),
    gap8: gap(8),
    gap32: gap(32),
    gap128: gap(128),
  },
  async play({ contestant, redis, counting, durationMs }) {
    const figures: Record<string, number> = {};
    await using crew = new Crew(contestant, PROCESSES);
    for (const clients of GROWTH_CLIENTS) {
      await crew.open({ port: redis, clients, lockTimeMs: LOCK_TIME_MS });
      await relay(crew, 0); // A warm-up: each client has its own copy of the library's code, which has not waited yet.
      const timed = await relay(crew, 0.4 * durationMs);
      figures[`gap${clients}`] = timed.reduce((sum, { idleGapMs }) => sum + idleGapMs, 0) / timed.length;

      await crew.open({ port: counting.port, clients, lockTimeMs: LOCK_TIME_MS });
      await relay(crew, 0); // Connecting the clients, and the commands that they send only once, are not counted.
      const before = counting.commands;
      const counted = await relay(crew, 0.2 * durationMs);
      const handOffs = counted.reduce((sum, { sections }) => sum + sections, 0);
      figures[`commands${clients}`] = (counting.commands - before) / handOffs;
    }
    return figures as Record<`commands${Clients}` | `gap${Clients}`, number>;
  },
};

/** Lets all clients request the key at once, and acquire it once each. Repeats that until the time is over. */
async function relay(crew: Crew, durationMs: number): Promise<Judgement[]> {
  const judgements: Judgement[] = [];
  const end = performance.now() + durationMs;
  do {
    const loop = {
      keys: "one",
      callers: 1,
      sectionMs: 1.2,
      pauseMs: 0,
      sectionsEach: 1,
    } as const;
    judgements.push(judgeOneKey(await crew.loop(loop)));
  } while (performance.now() < end);
  return judgements;
}

function commands(clients: number) {
  return {
    title: `commands per hand-off, ${clients} clients`,
    unit: "",
    better: "less",
    show: "value",
  } as const;
}

function gap(clients: number) {
  return { title: `hand-off, ${clients} clients`, unit: "ms", better: "less", show: "value" } as const;
}
