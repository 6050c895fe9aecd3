import test from "ava";
import ts from "typescript";
import { ABOUT_ATTRIBUTES } from "../../../runtime/attributes/documentation";
import { aboutAttribute } from "../../../transformer/hosts/language-service/attributes";
import { completionsAt } from "../../../transformer/hosts/language-service/completions";
import { referencesIn } from "../../../transformer/hosts/language-service/references";
import { weave } from "../../../transformer/weave/weave";
import { readDefaults } from "../../../transformer/read/attributes";

// The functions of the language service plugin. language-service.test.ts tests them through a real server.

const FILE = "/app/pay.ts";
const OPTIONS: ts.CompilerOptions = { noLib: true, types: [], target: ts.ScriptTarget.ES2022 };

function programOf(text: string): ts.Program {
  const host = ts.createCompilerHost(OPTIONS);
  host.getSourceFile = (name, languageVersion) =>
    name === FILE ? ts.createSourceFile(name, text, languageVersion, true) : undefined;
  return ts.createProgram([FILE], OPTIONS, host);
}

function suggested(text: string, after: string): string[] {
  const { defaults } = readDefaults({});
  const cancellation = { isCancellationRequested: () => false, throwIfCancellationRequested: () => {} };
  const project = { program: programOf(text), defaults, starters: [], hasInlayHints: true, cancellation };
  const offset = text.indexOf(after) + after.length;
  return completionsAt(ts, project, FILE, offset).map(({ name }) => name);
}

test("the documentation of each attribute says whether it is required, or its default", (t) => {
  const { defaults } = readDefaults({});
  const texts = Object.keys(ABOUT_ATTRIBUTES).map((name) => aboutAttribute(name, defaults).split("\n\n"));
  t.is(texts[0]?.[1], "Required.");
  const byDefault = Object.values(ABOUT_ATTRIBUTES).map((about) => about.byDefault);
  t.deepEqual(
    texts.map(([, sentence]) => sentence).slice(1),
    byDefault.slice(1).map((value) => (value === "" ? undefined : `Default: ${value}.`)),
  );
  for (const [meaning = ""] of texts) t.regex(meaning, /^(?:[A-Z]|`).*\.\)?$/);
  const ofProject = readDefaults({ lockTime: "20s" }).defaults;
  t.regex(aboutAttribute("lockTime", ofProject), /\n\nDefault: `20s` in this project\.$/);
});

test("the compiler accepts each value that is suggested for an attribute", (t) => {
  const required: Readonly<Record<string, string>> = { keyType: "fieldName=id", lockAtLeast: "lockTime=2m" };
  for (const [name, { values = [] }] of Object.entries(ABOUT_ATTRIBUTES)) {
    for (const value of values) {
      const needed = value === "VALUE" ? "" : (required[name] ?? "");
      const tag = `@redisLock businessFlag=pay keyName=order ${name}=${value} ${needed}`;
      const text = `/** ${tag} */\nexport async function pay(order: { id: string }): Promise<void> {}\n`;
      const problems = weave(FILE, text, { ts, module: "esm" })?.diagnostics.map(({ message }) => message);
      t.deepEqual(problems, [], tag);
    }
  }
});

const SHOP = `declare class Order { id: string; private secret: string; #hash: string; pay(): void; }
class Shop {
  tenant = "";
  private order: Order;
  #key = "";
  /** @redisLock businessFlag=pay keyName=HERE */
  async pay(order: Order): Promise<void> {}
}
`;

test("suggests the private members of `this`, and of nothing else", (t) => {
  const after = (path: string): string[] =>
    suggested(SHOP.replace("HERE", path), `keyName=${path}`).toSorted();
  t.deepEqual(after("this."), ["#key", "order", "tenant"]);
  t.deepEqual(after("order."), ["id"]);
  t.deepEqual(after("this.order."), ["id"]);
});

test("suggests and references names only inside the braces of a whole key", (t) => {
  const tagged = (key: string): string => SHOP.replace("businessFlag=pay keyName=HERE", `key="${key}"`);
  const after = (key: string): string[] => suggested(tagged(key), key).toSorted();
  t.deepEqual(after("mutex:${"), ["order", "this"]);
  t.deepEqual(after("mutex:${this.tenant}:${order."), ["id"]);
  t.deepEqual(after("mutex:${order.id}:"), []);
  const text = tagged("order:${this.tenant}/{${order.id}}");
  const program = programOf(text);
  const file = program.getSourceFile(FILE);
  const references = file === undefined ? [] : referencesIn(ts, program, file);
  t.deepEqual(
    references.map(({ start, end }) => text.slice(start, end)),
    ["tenant", "order", "id"],
  );
  t.true(references.every(({ start }) => start > text.indexOf("order:$") + 5));
});

test("suggests error classes that can be constructed, and no other names of errors", (t) => {
  const text = `interface Error { message: string }
declare var Error: { new (message?: string): Error };
class Busy extends Error {}
abstract class AnyFailure extends Error {}
interface Late extends Error {}
function Late(): Late { return new Error(); }
class Order {}
/** @redisLock businessFlag=pay onFailure= */
export async function pay() {}
`;
  t.deepEqual(suggested(text, "onFailure="), ["throw", "skip", "Busy"]);
});

test("a key expression references parameters, but not the properties of its object literals", (t) => {
  const named = (key: string): string[] => {
    const text = `/** @redisLock businessFlag=pay keyName="${key}" */
export async function pay(order: { id: string }, no: string) {}
`;
    const program = programOf(text);
    const file = program.getSourceFile(FILE);
    return file === undefined
      ? []
      : referencesIn(ts, program, file).map(({ start, end }) => text.slice(start, end));
  };
  t.deepEqual(named("order.id + no"), ["order", "id", "no"]);
  t.deepEqual(named("{ no: order.id }.no"), ["order", "id"]);
  t.deepEqual(named("{ [no]: order.id }[no]"), ["no", "order", "id", "no"]);
});
