// npm run bench -- <name> [arguments]
import { runByName } from "../build/by-name.mjs";

const bench = (name, about) => ({ file: `bench/${name}.ts`, about });
const built = (name, about) => ({ ...bench(name, about), needsBuild: true });

await runByName("bench", {
  compare: built("run", "Compare with other libraries on one Redis, side by side"),
  homes: bench("homes", "Measure a lock on one node, under Sentinel, in a cluster, and on a quorum"),
  cold: { ...built("cold", "Measure the first locks of a new process"), programs: ["redis-server"] },
  replicas: bench("replicas", "Measure a lock that a replica confirms"),
  quorum: bench("quorum", "Measure a lock on a quorum of five masters"),
  cluster: built("cluster", "Measure 10,000 locks in a cluster, and the delay that a migrating slot causes"),
  shared: built("shared", "Measure readers, permits, and other clients of the same Redis"),
  several: bench("several", "Measure locks with several holders or several keys, beside other libraries"),
  clients: built("clients", "Compare each client library with a lock by hand over the same library"),
  postgres: {
    ...built("postgres", "Compare locks in PostgreSQL with a lease row by hand, side by side"),
    programs: ["postgres"],
  },
  compile: built("compile", "Measure what the weave adds to a build"),
  analyze: built("analyze", "Measure `lockweave check` beside `tsc --noEmit`"),
  install: built("install", "Measure the size of an installation, and the time to load each part"),
  limits: built("limits", "Measure what a lock costs beyond its bare commands"),
  needs: { ...built("needs", "Measure what `@needsLock` costs a single caller"), programs: ["redis-server"] },
  memory: built("memory", "Measure a woven function on the memory store, beside a `Map`"),
  objects: built("objects", "Measure the memory of a held lock and of a waiting call"),
  "postgres-soak": {
    ...built(
      "postgres-soak",
      "Run 1,000,000 locks in PostgreSQL, and renew 10,000 for 30 minutes. Check that its tables stay small",
    ),
    programs: ["postgres"],
  },
  soak: {
    ...built("soak", "Run 200,000 locked sections. Check that the heap stays flat and that nothing is left"),
    node: ["--expose-gc"],
  },
});
