import test from "ava";
import { noStore } from "../../runtime/config/required-stores";

const sites = (count: number): string[] => Array.from({ length: count }, (_, n) => `f${n + 1}`);

test("the error for a missing store names at most five functions that need it", (t) => {
  const described = (count: number): string | undefined =>
    /There is (.*): configure\(\)/.exec(noStore([["ledger", sites(count)]], ["default"]).message)?.[1];
  t.is(described(0), "no store `ledger`");
  t.is(described(1), "no store `ledger`, which f1 uses");
  t.is(described(5), "no store `ledger`, which f1, f2, f3, f4, f5 use");
  t.is(described(7), "no store `ledger`, which f1, f2, f3, f4, f5 and 2 more use");
});

test("one error lists all missing stores and the configuration to add", (t) => {
  const missing = [
    ["ledger", sites(1)],
    ["cold-storage", sites(2)],
  ] as const;
  t.is(
    noStore(missing, ["default", "payments"]).message,
    'There is no store `ledger`, which f1 uses, and no store `cold-storage`, which f1, f2 use: configure() has only `default`, `payments`. Fix: call configure({ ..., stores: { ledger: "redis://...", "cold-storage": "redis://..." } })',
  );
});
