// Runs AVA with the given arguments, like `npx ava`. AVA 7 copies the counters of all test files at each step of each test. With many files,
// this costs more than most tests. Its reporters only read the counters, so here they get them without a copy.
import v8 from "node:v8";

const { serialize, deserialize } = v8;
const isCounters = (value) => value?.byFile instanceof Map;

v8.serialize = (value) => (isCounters(value) ? value : serialize(value));
v8.deserialize = (value) => (isCounters(value) ? value : deserialize(value));

await import("../../node_modules/ava/entrypoints/cli.mjs");
