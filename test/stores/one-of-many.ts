import type { Store } from "../../runtime/stores/port";

/** The store, in which also what is asked for alone goes as one of many, where it can. */
export function asOneOfMany(store: Store): Store {
  const { takeMany, placeMany, dropMany } = store;
  if (takeMany === undefined || dropMany === undefined) throw new Error("Expected a store that takes many");
  return {
    take: async (request, withinMs) =>
      request.fencing ? await store.take(request, withinMs) : only(await takeMany([request], withinMs)),
    takeMany,
    renew: (requests, withinMs) => store.renew(requests, withinMs),
    drop: async (request, withinMs) => only(await dropMany([request], withinMs)),
    dropMany,
    look: (keys, withinMs) => store.look(keys, withinMs),
    place: async (request, withinMs) =>
      placeMany === undefined || request.fencing
        ? await store.place(request, withinMs)
        : only(await placeMany([request], withinMs)),
    placeMany,
    leave: (key, place, withinMs) => store.leave(key, place, withinMs),
    next: (held, request, withinMs) => store.next(held, request, withinMs),
    listen: (listener) => store.listen(listener),
    close: () => store.close(),
  };
}

function only<Reply>(replies: readonly (Reply | Error)[]): Reply {
  const [reply = new Error("Expected one reply")] = replies;
  if (reply instanceof Error) throw reply;
  return reply;
}
