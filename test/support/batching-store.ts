import type { Store } from "../../runtime/stores/port";

/** The same store, which also carries out many commands as one, each by itself. */
export function batching(store: Store): Store {
  return {
    take: (request, withinMs) => store.take(request, withinMs),
    takeMany: (requests, withinMs) => Promise.all(requests.map((request) => store.take(request, withinMs))),
    renew: (requests, withinMs) => store.renew(requests, withinMs),
    drop: (request, withinMs) => store.drop(request, withinMs),
    dropMany: (requests, withinMs) => Promise.all(requests.map((request) => store.drop(request, withinMs))),
    look: (keys, withinMs) => store.look(keys, withinMs),
    place: (request, withinMs) => store.place(request, withinMs),
    placeMany: (requests, withinMs) => Promise.all(requests.map((request) => store.place(request, withinMs))),
    leave: (key, place, withinMs) => store.leave(key, place, withinMs),
    next: (held, request, withinMs) => store.next(held, request, withinMs),
    listen: (listener) => store.listen(listener),
    close: () => store.close(),
  };
}
