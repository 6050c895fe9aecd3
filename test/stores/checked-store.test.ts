import test from "ava";
import { memoryStore } from "../../runtime/stores/memory";
import { withCheckedReplies } from "../../runtime/stores/checked-store";
import type { Store } from "../../runtime/stores/port";

const REQUEST = { key: "LOCK_checked", requestId: "one", lockTimeMs: 1_000, fencing: false };

test("the replies of memoryStore() are not checked", (t) => {
  const store = memoryStore();
  t.is(withCheckedReplies(store), store);
});

test("the replies of memoryStore() are checked if the user replaced one of its methods", async (t) => {
  const wrong = { acquire: async () => ({ acquired: "no" }) };
  const store: Store = Object.assign(memoryStore(), wrong as unknown as Pick<Store, "acquire">);
  const checked = withCheckedReplies(store);
  await t.throwsAsync(checked.acquire(REQUEST, 1_000), { message: /`acquired`/ });
  t.is(withCheckedReplies(store), checked, "it has one wrapper");
});
