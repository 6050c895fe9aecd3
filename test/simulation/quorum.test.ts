import test from "ava";
import { simulateQuorum, type QuorumFaults, type QuorumWeather } from "./quorum-world";

// Processes with the runtime's real code over a quorum of five masters, in virtual time. A failure names its
// seed, which repeats it: SEED=123 npx ava test/simulation/quorum.test.ts

const { SEED, SEEDS = "1" } = process.env;

const CALM: QuorumWeather = {
  ailing: 0,
  restarts: false,
  stalls: false,
  outages: false,
  losses: 0,
  partitions: false,
  skewMs: 0,
};

const WEATHERS: Record<string, QuorumWeather> = {
  "while nothing fails": CALM,
  "while two of five masters die and come back": { ...CALM, ailing: 2, outages: true },
  "while two of five masters hang": { ...CALM, ailing: 2, stalls: true },
  "while two of five masters restart empty": { ...CALM, ailing: 2, restarts: true },
  "while three of five masters die, hang, and come back": { ...CALM, ailing: 3, outages: true, stalls: true },
  "while messages are lost, late, and duplicated": { ...CALM, losses: 0.05 },
  "while processes and masters are partitioned": { ...CALM, partitions: true },
  "while the masters' clocks differ": {
    ...CALM,
    skewMs: 20_000,
    partitions: true,
    losses: 0.02,
    ailing: 2,
    stalls: true,
  },
  "while masters restart empty behind partitions": {
    ...CALM,
    ailing: 2,
    restarts: true,
    partitions: true,
  },
  "while all of this happens": {
    ...CALM,
    ailing: 2,
    restarts: true,
    stalls: true,
    outages: true,
    losses: 0.05,
    partitions: true,
  },
};

function seedsOf(count: number): number[] {
  return SEED === undefined ? Array.from({ length: count }, (_, seed) => seed + 1) : [Number(SEED)];
}

for (const [name, weather] of Object.entries(WEATHERS)) {
  test(`no two callers believe they hold the same lock, tokens rise, and nothing is left ${name}`, async (t) => {
    let [served, refused, troubles] = [0, 0, 0];
    for (const seed of seedsOf(Number(SEEDS))) {
      const outcome = await simulateQuorum(seed, weather);
      t.deepEqual(outcome.problems, [], `SEED=${seed}`);
      served += outcome.served;
      refused += outcome.refused;
      troubles += outcome.troubles;
    }
    t.log(`${served} served, ${refused} refused, ${troubles} troubles`);
    t.true(served > 0);
  });
}

async function problemsOf(weather: QuorumWeather, faults: QuorumFaults): Promise<string> {
  for (const seed of seedsOf(60)) {
    const { problems } = await simulateQuorum(seed, weather, faults);
    if (problems[0] !== undefined) return problems[0];
  }
  return "none";
}

const ALL_OF_IT = WEATHERS["while all of this happens"] ?? CALM;

test("the simulation finds a quorum that counts two of five masters as a majority", async (t) => {
  t.regex(await problemsOf(ALL_OF_IT, { majority: 2 }), /both believe they hold/);
});

test("the simulation finds a quorum that counts masters which have just lost their locks", async (t) => {
  const weather = WEATHERS["while masters restart empty behind partitions"] ?? CALM;
  t.regex(await problemsOf(weather, { forgetsRestarts: true }), /both believe they hold/);
});

test("the simulation finds a quorum that writes its fencing tokens to no majority", async (t) => {
  const weather = WEATHERS["while the masters' clocks differ"] ?? CALM;
  t.regex(await problemsOf(weather, { raisesNoFence: true }), /^token \d+/);
});
