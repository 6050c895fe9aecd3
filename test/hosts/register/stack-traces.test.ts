import test from "ava";
import { installNode, OTHER_NODES } from "./nodes";
import { HOSTS, makeHosted, withTypeCheck } from "./project";
import { inMatrix, outsideMatrix } from "../../support/suites";

/** The error is in a line to which the weave adds an `await`. */
const SOURCE = `interface Order { readonly no: string }
enum Kind { Paid = 1 }
export class Orders {
  constructor(private readonly kind: Kind) {}
  /** @redisLock businessFlag=pay keyName=order.no */
  async pay(order: Order): Promise<number> { return this.fails(this.kind, order); }
  private fails(kind: Kind, order: Order): Promise<number> {
    if (kind === Kind.Paid) throw new Error(order.no + " is paid"); return Promise.resolve(1);
  }
}
`;
const MAIN = `import { configure, memoryStore } from "lockweave";
import { Orders } from "./orders.js";
configure({ store: memoryStore() });
new Orders(1).pay({ no: "A1" }).catch((error: Error) => console.log(error.stack));
`;

function placeOf(words: string): string {
  const lines = (SOURCE.split(words)[0] ?? "").split("\n");
  return `:${lines.length}:${(lines.at(-1) ?? "").length + 1}`;
}

for (const [host, extension, inSuite] of [
  ["tsx", "mts", inMatrix],
  ["tsx", "cts", inMatrix],
  ["ts-node", "ts", outsideMatrix],
  ["ts-node with type check", "ts", inMatrix],
  ["ts-node for ES modules", "mts", inMatrix],
] as const) {
  inSuite(`${host}: stack traces show lines and columns of the .${extension} file on disk`, async (t) => {
    const project = await makeHosted(
      {
        "package.json": JSON.stringify(extension === "mts" ? { type: "module" } : {}),
        [`src/orders.${extension}`]: SOURCE,
        [`src/main.${extension}`]: MAIN.replace(
          "orders.js",
          extension === "ts" ? "orders" : `orders.${extension.replace("t", "j")}`,
        ),
      },
      { types: ["node"] },
    );
    if (host === "ts-node with type check") await withTypeCheck(project);
    const { stdout, stderr } = await project.run(...HOSTS[host], `src/main.${extension}`);
    const [message, first, second] = stdout.split("\n");
    t.is(message, "Error: A1 is paid", stderr);
    t.true(first?.includes(`orders.${extension}${placeOf("new Error")}`), stdout);
    t.true(second?.includes(`orders.${extension}${placeOf("fails(this.kind")}`), stdout);
  });
}

inMatrix("ts-node: stack traces of a program in one file show its lines and columns", async (t) => {
  const main = `${SOURCE}${MAIN.replace(/import .*Orders.*\n/, "")}`;
  const project = await makeHosted({ "package.json": "{}", "main.ts": main }, { types: ["node"] });
  const { stdout, stderr } = await project.run(...HOSTS["ts-node"], "main.ts");
  const [message, first, second] = stdout.split("\n");
  t.is(message, "Error: A1 is paid", stderr);
  t.true(first?.includes(`main.ts${placeOf("new Error")}`), stdout);
  t.true(second?.includes(`main.ts${placeOf("fails(this.kind")}`), stdout);
});

/** The source with erasable types only, since Node can strip no others. */
const ERASABLE = SOURCE.replace(
  "enum Kind { Paid = 1 }",
  "const Kind = { Paid: 1 }; type Kind = number;",
).replace(
  "constructor(private readonly kind: Kind) {}",
  "private readonly kind: Kind; constructor(kind: Kind) { this.kind = kind; }",
);

for (const version of OTHER_NODES) {
  test.serial(`Node ${version}: stack traces show lines and columns of the file on disk`, async (t) => {
    const node = await installNode(version);
    const project = await makeHosted({
      "orders.mts": ERASABLE,
      "main.mts": MAIN.replace("orders.js", "orders.mts"),
    });
    const { stdout, stderr } = await project.runWith(node, ...HOSTS.Node, "main.mts");
    const [message, first, second] = stdout.split("\n");
    t.is(message, "Error: A1 is paid", stderr);
    t.true(first?.includes(`orders.mts${placeOf("new Error")}`), stdout);
    t.true(second?.includes(`orders.mts${placeOf("fails(this.kind")}`), stdout);
  });
}
