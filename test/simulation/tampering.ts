import type { Store } from "../../runtime/store";

/** Puts a fault of the test's own into a store. */
export type Tamper = (store: Store) => Store;

/** The store, but for what is given. */
export function but(store: Store, faults: Partial<Store>): Store {
  return {
    acquire: (request) => store.acquire(request),
    wait: (request) => store.wait(request),
    leave: (key, requestId) => store.leave(key, requestId),
    renew: (holders) => store.renew(holders),
    release: (key, requestId, next) => store.release(key, requestId, next),
    listen: (onHint) => store.listen(onHint),
    close: () => store.close(),
    ...faults,
  };
}
