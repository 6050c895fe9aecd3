import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "ava";

const DOCS = join(__dirname, "../../docs");

test("the dashboard runs exactly the lock queries that docs/operations.md lists", (t) => {
  const { panels } = JSON.parse(readFileSync(join(DOCS, "grafana-dashboard.json"), "utf8")) as {
    panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
  };
  const documented = [...readFileSync(join(DOCS, "operations.md"), "utf8").matchAll(/^\| .*\| `(.+)` +\|$/gm)]
    .map(([, query = ""]) => query)
    .filter((query) => query.includes("lockweave_lock_"));
  t.true(documented.length > 3);
  t.deepEqual(
    panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    documented,
  );
});
