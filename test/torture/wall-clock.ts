import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Child } from "../support/child";
import type { SeededRandom } from "../support/seeded-random";

/** The wall clock of one process, which the parent sets. */
export interface WallClock {
  readonly environment: Readonly<Record<string, string>>;
  set(differenceMs: number, child: Pick<Child<unknown>, "tell">): void;
}

/** Debian's package `libfaketime` has a folder for each kind of processor. */
const LIBRARIES = "/usr/lib";

/**
 * Gives a wall clock to a new process. For half of the processes, `libfaketime` changes it for all code of the process, including its
 * client libraries. The others change `Date` and the clock of the runtime. The monotonic clock stays as it is.
 *
 * @param file where `libfaketime` reads the difference
 */
export function openWallClock(file: string, random: SeededRandom): WallClock {
  const library = LIBRARY;
  if (!random.happens(0.5) || library === undefined) {
    return { environment: {}, set: (differenceMs, child) => child.tell(String(differenceMs)) };
  }
  const set = (differenceMs: number): void => {
    // In one step, because the process may read the file at any time.
    writeFileSync(`${file}.new`, `${differenceMs < 0 ? "" : "+"}${(differenceMs / 1_000).toFixed(3)}\n`);
    renameSync(`${file}.new`, file);
  };
  set(0);
  return {
    environment: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      DONT_FAKE_MONOTONIC: "1",
      NO_FAKE_STAT: "1",
    },
    set,
  };
}

/** The library for programs with several threads. */
const LIBRARY = findLibrary();

function findLibrary(): string | undefined {
  if (process.platform !== "linux") return undefined;
  return readdirSync(LIBRARIES)
    .map((folder) => join(LIBRARIES, folder, "faketime/libfaketimeMT.so.1"))
    .find((path) => existsSync(path));
}
