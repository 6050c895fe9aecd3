import test from "ava";
import type { StateListeners } from "../../runtime/stores/redis/client-port";
import { openSubscription } from "../../runtime/stores/redis/glide/connection";
import { deferred } from "../support/deferred";

// The subscription over another client of GLIDE, with clients that this file fakes.

class FakeGlide {
  static readonly opened: FakeGlide[] = [];
  isClosed = false;

  static createClient(): Promise<FakeGlide> {
    const client = new FakeGlide();
    this.opened.push(client);
    return Promise.resolve(client);
  }

  customCommand(): Promise<unknown> {
    if (!this.isClosed) return Promise.resolve(1);
    return Promise.reject(Object.assign(new Error("the client is closed"), { name: "ClosingError" }));
  }

  close(): void {
    this.isClosed = true;
  }
}

test("a subscription whose client GLIDE closed ends once, and reports nothing afterwards", async (t) => {
  const listening = new Set<StateListeners>();
  const begun = deferred();
  let [subscribed, ended] = [0, 0];
  const subscription = openSubscription(
    { glide: new FakeGlide(), config: {} },
    "channel",
    {
      subscribed() {
        subscribed += 1;
        begun.resolve();
      },
      message: () => t.fail(),
      failed: () => t.fail(),
      ended: () => (ended += 1),
    },
    (listeners) => {
      listening.add(listeners);
      return () => listening.delete(listeners);
    },
  );
  await begun.promise;
  await subscription.ping();
  t.is(listening.size, 1);
  FakeGlide.opened[0]?.close();
  await t.throwsAsync(async () => await subscription.ping(), { message: "the client is closed" });
  await t.throwsAsync(async () => await subscription.ping());
  t.deepEqual([subscribed, ended, listening.size], [1, 1, 0]);
});
