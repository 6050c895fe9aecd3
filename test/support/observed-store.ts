import type { DropRequest, PlaceRequest, Store, TakeRequest } from "../../runtime";

/** Who is told what a store does. */
export interface Observer {
  onTaken(key: string): void;
  /** A hold is about to end. */
  onDrop(key: string): void;
}

/** The same store, of which somebody takes notes. */
export function observed(store: Store, observer: Observer): Store {
  return {
    async take(request: TakeRequest, withinMs: number) {
      const reply = await store.take(request, withinMs);
      if (reply.taken) observer.onTaken(request.key);
      return reply;
    },
    async place(request: PlaceRequest, withinMs: number) {
      const reply = await store.place(request, withinMs);
      if (reply.taken) observer.onTaken(request.key);
      return reply;
    },
    async drop(request: DropRequest, withinMs: number) {
      observer.onDrop(request.key);
      return await store.drop(request, withinMs);
    },
    async next(held: DropRequest, request: PlaceRequest, withinMs: number) {
      observer.onDrop(held.key);
      const reply = await store.next(held, request, withinMs);
      if (reply.dropped && typeof reply.next === "object") observer.onTaken(request.key);
      return reply;
    },
    renew: (requests, withinMs) => store.renew(requests, withinMs),
    look: (keys, withinMs) => store.look(keys, withinMs),
    leave: (key, place, withinMs) => store.leave(key, place, withinMs),
    listen: (listener) => store.listen(listener),
    close: () => store.close(),
  };
}
