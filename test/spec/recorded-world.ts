import type { Caller } from "../simulation/caller";
import { inRedis } from "../simulation/simulated-store";
import type { Tamper } from "../simulation/tampering";
import { weatherOf, type Weather } from "../simulation/weather";
import { simulateOver } from "../simulation/world";
import { SeededRandom } from "../support/seeded-random";
import type { Belief, ModelTrace } from "./model-trace";
import { Recording } from "./recording";

/** Simulates the world of a seed, if `lock.pml` has its weather. Returns the traces of the keys about which the model says something. */
export async function tracesOfSeed(
  seed: number,
  tamper: Tamper = (store) => store,
): Promise<readonly ModelTrace[]> {
  if (!isModeled(weatherOf(seed, new SeededRandom(seed)))) return [];
  const callers: Caller[] = [];
  const recordings: Recording[] = [];
  await simulateOver(seed, (surroundings) => {
    const recording = new Recording(
      () => surroundings.world.now(),
      () => beliefsOf(callers),
    );
    recordings.push(recording);
    let processes = 0;
    const store = inRedis((plain) => recording.ofServer(tamper(plain)))({
      ...surroundings,
      judge(serverNow) {
        const invariants = surroundings.judge(serverNow);
        const joined = invariants.joined.bind(invariants);
        invariants.joined = (caller) => {
          callers.push(caller);
          // Two callers of one context may rely on one hold.
          if (caller.isReentrant || caller.isInside) recording.unfit = "a lock is reentrant";
          joined(caller);
        };
        invariants.waitsForAll = () => {
          recording.unfit = "a call has several keys";
        };
        return invariants;
      },
    });
    const { server } = store;
    const isForgotten = server.isForgotten.bind(server);
    // In the end, the world itself acquires each key.
    server.isForgotten = (key) => {
      recording.end();
      return isForgotten(key);
    };
    return {
      ...store,
      connect(end) {
        const way = store.connect(end);
        processes += 1;
        return { ...way, store: recording.ofProcess(processes, way.store, end.process.rate) };
      },
    };
  });
  return recordings.flatMap((recording) => {
    recording.end();
    return recording.traces;
  });
}

/** Returns whether the store keeps what it grants, and no machine is suspended. */
function isModeled({ jumps, suspensions, deletions, restarts }: Weather): boolean {
  return jumps === "none" && suspensions + deletions + restarts === 0;
}

function* beliefsOf(callers: readonly Caller[]): Generator<Belief> {
  for (const { lock, key, process } of callers) {
    const { storeValue } = lock;
    const { clock, number } = process;
    if (clock.isDead || storeValue === undefined) continue;
    yield { key, process: number, requestId: storeValue, leftMs: lock.remaining() / clock.rate };
  }
}
