import test from "ava";
import { simulateQuorum, type QuorumFaults, type QuorumWeather } from "./quorum-world";

// Processes with the runtime's real code over a quorum of five masters, in virtual time. A seed that breaks something is
// named in the failure, and breaks it again: SEED=123 npx ava test/simulation/quorum.test.ts

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
  calm: CALM,
  "where two of five die and come back": { ...CALM, ailing: 2, outages: true },
  "where two of five hang": { ...CALM, ailing: 2, stalls: true },
  "where two of five are restarted empty": { ...CALM, ailing: 2, restarts: true },
  "where three of five die, hang and come back": { ...CALM, ailing: 3, outages: true, stalls: true },
  "where messages are lost, late and doubled": { ...CALM, losses: 0.05 },
  "where processes and masters are partitioned": { ...CALM, partitions: true },
  "where the masters' clocks are apart": {
    ...CALM,
    skewMs: 20_000,
    partitions: true,
    losses: 0.02,
    ailing: 2,
    stalls: true,
  },
  "where masters are restarted empty behind partitions": {
    ...CALM,
    ailing: 2,
    restarts: true,
    partitions: true,
  },
  "where all of it happens": {
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
  test(`${name}: no two are sure to hold one lock, tokens rise, and nothing is left`, async (t) => {
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

const ALL_OF_IT = WEATHERS["where all of it happens"] ?? CALM;

test("a quorum that counts two of five for a majority is found out", async (t) => {
  t.regex(await problemsOf(ALL_OF_IT, { majority: 2 }), /both sure to hold/);
});

test("a quorum that counts masters which have just lost their locks is found out", async (t) => {
  const weather = WEATHERS["where masters are restarted empty behind partitions"] ?? CALM;
  t.regex(await problemsOf(weather, { forgetsRestarts: true }), /both sure to hold/);
});

test("a quorum that writes a fencing token to no majority is found out", async (t) => {
  const weather = WEATHERS["where the masters' clocks are apart"] ?? CALM;
  t.regex(await problemsOf(weather, { raisesNoFence: true }), /^token \d+/);
});
