import type { Store } from "../../runtime/stores/port";

/** Puts a fault of the test's own into a store. */
export type Tamper = (store: Store) => Store;

/** The store, but for what is given. */
export function but(store: Store, faults: Partial<Store>): Store {
  return {
    take: (request, withinMs) => store.take(request, withinMs),
    renew: (requests, withinMs) => store.renew(requests, withinMs),
    drop: (request, withinMs) => store.drop(request, withinMs),
    look: (keys, withinMs) => store.look(keys, withinMs),
    revoke:
      store.revoke && ((request, withinMs) => store.revoke?.(request, withinMs) ?? Promise.resolve(false)),
    place: (request, withinMs) => store.place(request, withinMs),
    leave: (key, place, withinMs) => store.leave(key, place, withinMs),
    next: (held, request, withinMs) => store.next(held, request, withinMs),
    listen: (listener) => store.listen(listener),
    close: () => store.close(),
    ...faults,
  };
}
