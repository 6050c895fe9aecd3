import test from "ava";
import { noStore } from "../../runtime/required-stores";

const sites = (count: number): string[] => Array.from({ length: count }, (_, n) => `f${n + 1}`);

test("of those who ask for a store that is missing five are named, and the others counted", (t) => {
  const told = (count: number): string | undefined =>
    /There is (.*): configure\(\)/.exec(noStore([["ledger", sites(count)]], ["default"]).message)?.[1];
  t.is(told(0), "no store `ledger`");
  t.is(told(1), "no store `ledger`, which f1 asks for");
  t.is(told(5), "no store `ledger`, which f1, f2, f3, f4, f5 ask for");
  t.is(told(7), "no store `ledger`, which f1, f2, f3, f4, f5 and 2 more ask for");
});

test("several that are missing are told in one sentence, with what to write", (t) => {
  const missing = [
    ["ledger", sites(1)],
    ["cold-storage", sites(2)],
  ] as const;
  t.is(
    noStore(missing, ["default", "payments"]).message,
    'There is no store `ledger`, which f1 asks for, and no store `cold-storage`, which f1, f2 ask for: configure() is given `default`, `payments`. Add it: configure({ ..., stores: { ledger: "redis://...", "cold-storage": "redis://..." } }).',
  );
});
