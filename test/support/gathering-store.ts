import { Batch } from "../../runtime/batch";
import { systemClock } from "../../runtime/clock";
import { Commands, NEVER_DUE, type Command } from "../../runtime/commands";
import type { AcquireReply, AcquireRequest, Released, ReleaseRequest, Store } from "../../runtime/store";

/** What is asked of it within one turn of the event loop goes to the store together, as the lines of locks send it. */
export function gathering(store: Store): Store {
  const { acquireMany, releaseMany } = store;
  const commands = new Commands(systemClock, 60_000);
  const acquires = new Batch<Asked<AcquireRequest, AcquireReply>, AcquireReply>(
    commands,
    acquireMany && ((asked) => acquireMany(asked.map(({ request }) => request))),
  );
  const releases = new Batch<Asked<ReleaseRequest, Released>, Released>(
    commands,
    releaseMany && ((asked) => releaseMany(asked.map(({ request }) => request))),
  );
  return {
    acquire: (request) =>
      request.fencing
        ? store.acquire(request)
        : answer((...told) =>
            acquires.send(new Asked(request, () => store.acquire(request), ...told), systemClock.now()),
          ),
    release: (key, requestId, next) =>
      next === undefined
        ? answer<Released>((...told) =>
            releases.send(
              new Asked({ key, requestId }, () => store.release(key, requestId), ...told),
              systemClock.now(),
            ),
          )
        : store.release(key, requestId, next),
    wait: (request) => store.wait(request),
    leave: (key, requestId) => store.leave(key, requestId),
    renew: (holders) => store.renew(holders),
    listen: (onHint) => store.listen(onHint),
    close: () => store.close(),
  };
}

/** Also what is asked of it alone goes as one of many. */
export function asOneOfMany(store: Store): Store {
  const { acquireMany, releaseMany } = store;
  if (acquireMany === undefined || releaseMany === undefined)
    throw new Error("Expected a store that gathers");
  return {
    ...gathering(store),
    acquire: async (request) =>
      request.fencing ? await store.acquire(request) : only(await acquireMany([request])),
    release: async (key, requestId, next) =>
      next === undefined
        ? only(await releaseMany([{ key, requestId }]))
        : await store.release(key, requestId, next),
  };
}

function only<Reply>(replies: readonly (Reply | Error)[]): Reply {
  const [reply = new Error("Expected one reply")] = replies;
  if (reply instanceof Error) throw reply;
  return reply;
}

type Told<Reply> = [heard: (reply: Reply) => void, failed: (error: unknown) => void];

function answer<Reply>(ask: (...told: Told<Reply>) => void): Promise<Reply> {
  return new Promise((resolve, reject) => ask(resolve, reject));
}

class Asked<Request, Reply> implements Command<Reply> {
  withinMs = 0;
  dueAt = NEVER_DUE;
  readonly request: Request;
  readonly send: () => Promise<Reply>;
  readonly heard: (reply: Reply) => void;
  readonly failed: (error: unknown) => void;

  constructor(request: Request, send: () => Promise<Reply>, ...[heard, failed]: Told<Reply>) {
    this.request = request;
    this.send = send;
    this.heard = heard;
    this.failed = failed;
  }

  heardLate(): void {}
}
