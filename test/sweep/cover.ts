import { SeededRandom } from "../support/seeded-random";
import { excludedBy } from "./rules";
import { DIMENSIONS, type Dimension, type Setup } from "./setup";

const OTHERS = (Object.keys(DIMENSIONS) as Dimension[]).filter((dimension) => dimension !== "host");

const setupsByHost = new Map<Setup["host"], readonly Setup[]>();

/** Returns all possible setups of a host. */
export function setupsOf(host: Setup["host"]): readonly Setup[] {
  const found = setupsByHost.get(host) ?? possible(host);
  setupsByHost.set(host, found);
  return found;
}

function possible(host: Setup["host"]): Setup[] {
  let partial: object[] = [{ host }];
  for (const dimension of OTHERS) {
    partial = partial.flatMap((one) =>
      DIMENSIONS[dimension].map((value) => ({ ...one, [dimension]: value })),
    );
  }
  return (partial as Setup[]).filter((setup) => excludedBy(setup) === undefined);
}

/** The maximum number of values of a dimension. */
const MOST_VALUES = 8;
const PAIRS = OTHERS.length ** 2 * MOST_VALUES ** 2;

/** Returns a number for each pair of values in a setup. */
function pairsOf(setup: Setup): number[] {
  const values = OTHERS.map((dimension) =>
    (DIMENSIONS[dimension] as readonly string[]).indexOf(setup[dimension]),
  );
  return values.flatMap((one, index) =>
    values.slice(index + 1).map((other, offset) => {
      const dimensions = index * OTHERS.length + index + 1 + offset;
      return (dimensions * MOST_VALUES + one) * MOST_VALUES + other;
    }),
  );
}

function shuffled<T>(items: readonly T[], random: SeededRandom): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last -= 1) {
    const at = random.below(last + 1);
    const [one, other] = [result[at], result[last]] as [T, T];
    [result[at], result[last]] = [other, one];
  }
  return result;
}

/**
 * Returns a small set of setups of a host that together have each possible pair of values. Setups with many new pairs come first.
 */
export function coverOf(host: Setup["host"], seed: number): Setup[] {
  const all = shuffled(setupsOf(host), new SeededRandom(seed)).map((setup) => ({
    setup,
    pairs: pairsOf(setup),
  }));
  const isSeen = new Uint8Array(PAIRS);
  const cover: Setup[] = [];
  const most = (OTHERS.length * (OTHERS.length - 1)) / 2;
  for (let wanted = most; wanted > 0; wanted -= 1) {
    for (const { setup, pairs } of all) {
      const fresh = pairs.filter((pair) => isSeen[pair] === 0);
      if (fresh.length < wanted) continue;
      for (const pair of fresh) isSeen[pair] = 1;
      cover.push(setup);
    }
  }
  return cover;
}

/** Returns every cover, or the given number of setups, spread evenly over the hosts. */
export function sweepOf(count: number | "all", seed: number): Setup[] {
  const covers = DIMENSIONS.host.map((host) => coverOf(host, seed));
  if (count === "all") return covers.flat();
  const longest = Math.max(...covers.map(({ length }) => length));
  const inTurn = Array.from({ length: longest }, (_, index) => covers.flatMap((cover) => cover[index] ?? []));
  return inTurn
    .flat()
    .slice(0, count)
    .toSorted((one, other) => hostOf(one) - hostOf(other));
}

function hostOf({ host }: Setup): number {
  return DIMENSIONS.host.indexOf(host);
}

/** Returns the number of all possible setups. */
export function sizeOfProduct(): number {
  return DIMENSIONS.host.reduce((sum, host) => sum + setupsOf(host).length, 0);
}
