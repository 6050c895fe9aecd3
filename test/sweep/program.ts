import type { Setup } from "./setup";

/** The tag of the program at a time: the one that it needs, none, or one with a different key for each call. */
export type Stage = "tagged" | "untagged" | "other key";

const COUNTING = `let inside = 0;
let most = 0;
export function mostInside(): number {
  return most;
}
export const noted: string[] = [];
async function work(id: string, word: string): Promise<string> {
  inside += 1;
  most = Math.max(most, inside);
  for (let turn = 0; turn < 100; turn += 1) await null;
  inside -= 1;
  return \`\${word} of \${id}\`;
}
`;

const NOTE = `function note(_: object, name: string): void {
  noted.push(name);
}
`;

const CLERK = `export class Clerk {
  @note serve(): void {}
}
`;

const TAGS: Readonly<Record<Stage, string>> = {
  tagged: "/** @redisLock businessFlag=pay keyName=id */",
  untagged: "/** Pays. */",
  "other key": "/** @redisLock businessFlag=pay keyName=word */",
};

const PARAMETERS = "id: string, word: string";

/** The tagged function. The file exports it as `pay`, directly or through its object. */
const FUNCTIONS: Readonly<Record<Setup["form"], (tag: string, decorator: string) => string>> = {
  function: (tag) => `${tag}
export async function pay(${PARAMETERS}): Promise<string> {
  return await work(id, word);
}
`,
  arrow: (tag) => `${tag}
export const pay = async (${PARAMETERS}): Promise<string> => await work(id, word);
`,
  method: (tag, decorator) => `class Shop {
  readonly name = "shop";
  ${tag}
  ${decorator}async pay(${PARAMETERS}): Promise<string> {
    return \`\${this.name}: \${await work(id, word)}\`;
  }
}
const shop = new Shop();
export const pay = (${PARAMETERS}): Promise<string> => shop.pay(id, word);
`,
  object: (tag) => `const shop = {
  name: "shop",
  ${tag}
  async pay(${PARAMETERS}): Promise<string> {
    return \`\${this.name}: \${await work(id, word)}\`;
  },
};
export const pay = (${PARAMETERS}): Promise<string> => shop.pay(id, word);
`,
};

/** Returns the text of the tagged file. */
export function shopText(setup: Setup, stage: Stage): string {
  const hasDecorators = setup.mode === "metadata";
  const tagged = FUNCTIONS[setup.form](TAGS[stage], hasDecorators ? "@note " : "");
  return COUNTING + (hasDecorators ? NOTE + CLERK : "") + tagged;
}

/** The prefix of the line that the program prints. */
export const RESULT = "RESULT ";

const CALLS = `const results = await Promise.all([pay("A1", "first"), pay("A1", "second")]);
  process.stdout.write(\`${RESULT}\${JSON.stringify({ results, noted, most: mostInside() })}\\n\`);
  await shutdown();
`;

/** The way in which the program reaches the tagged function. */
export interface Reach {
  /** The specifier of the function's module. `undefined` if that is the entry itself. */
  readonly specifier: string | undefined;
  readonly isDynamic: boolean;
  /** Whether the program has no locks and sets `woven: false`. */
  readonly isControl?: boolean;
}

/** Returns the text of the entry. */
export function mainText(
  setup: Setup,
  stage: Stage,
  { specifier, isDynamic, isControl = false }: Reach,
): string {
  const names = "{ pay, mostInside, noted }";
  const options = `{ store: memoryStore()${isControl ? ", woven: false" : ""} }`;
  const isStatic = specifier !== undefined && !isDynamic;
  const head = [
    `import { configure, memoryStore, shutdown } from "lockweave";`,
    ...(isStatic ? [`import ${names} from ${JSON.stringify(specifier)};`] : []),
    `configure(${options});`,
  ];
  const own = specifier === undefined ? shopText(setup, stage) : "";
  const load = isDynamic ? `const ${names} = await import(${JSON.stringify(specifier)});\n  ` : "";
  return `${head.join("\n")}\n${own}${start(setup, load + CALLS)}`;
}

function start({ host }: Setup, body: string): string {
  return host === "jest"
    ? `test("pays", async () => {\n  ${body}});\n`
    : `async function main(): Promise<void> {\n  ${body}}\nvoid main();\n`;
}
