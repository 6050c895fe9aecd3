import type { FlatStore } from "../support/flat-store";

export { withoutBatch as but } from "../support/flat-store";

/** Plants a fault of a test in a store. */
export type Tamper = (store: FlatStore) => FlatStore;
