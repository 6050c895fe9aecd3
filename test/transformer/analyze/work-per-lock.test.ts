import { growth, workOf } from "../../support/work-counter"; // The first import, because it counts only code that is loaded later.
import { inMatrixSerially } from "../../support/suites";
import { analyzed } from "./analyzed";

// These tests count the work of the analysis while a program grows. They do not measure time. A failure names the function and the line
// that ran too often.

const FEW = 5;
const MANY = 50;
/** The work may grow with the program, and with the depth of a sort. Once for each pair would be 100 times. */
const RATIO = 1.6 * (MANY / FEW);
/** Work that does not depend on the size of the program, such as a longer name, may begin by chance in the larger one. */
const CHANCE = 40;

type Files = Readonly<Record<string, string>>;

function each(count: number, text: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => text(index)).join("\n");
}

/** @returns a tag whose length does not depend on the number */
function tag(flag: string, at: number): string {
  return `/** @redisLock businessFlag=${flag}${100 + at} keyName=id */`;
}

const PROGRAMS: Readonly<Record<string, (count: number) => Files>> = {
  "locks whose bodies start promises": (count) => ({
    "a.ts": `
      declare function work(): Promise<number>;
      declare function setTimeout(callback: () => void, ms: number): void;
      export class Jobs {
        ${each(
          count,
          (at) => `
          readonly field${at}: Promise<number>[] = [];
          ${tag("start", at)}
          async start${at}(id: string): Promise<number> {
            const done = work();
            const running: Promise<number>[] = [];
            running.push(work());
            this.field${at}.push(work());
            setTimeout(() => console.log(id, done), 10);
            await Promise.all(this.field${at});
            for (const one of running) await one;
            return done;
          }`,
        )}
      }
      declare const console: { log(...words: unknown[]): void };`,
  }),
  "locks that call the next one": (count) => ({
    "a.ts": `
      ${each(
        count,
        (at) => `
        ${tag("step", at)}
        export async function step${at}(id: string): Promise<void> {
          ${at === 0 ? "" : `await step${at - 1}(id);`}
        }`,
      )}`,
  }),
  "locks that call the same functions": (count) => ({
    "a.ts": `
      ${each(
        count,
        (at) => `
        ${tag("use", at)}
        export async function use${at}(id: string): Promise<void> {
          await help${count - 1}(id);
        }
        async function help${at}(id: string): Promise<void> {
          await ${at === 0 ? "id" : `help${at - 1}(id)`};
        }`,
      )}`,
  }),
  "pairs of locks in different orders": (count) => ({
    "a.ts": `
      ${each(
        count,
        (at) => `
        ${tag("left", at)}
        export async function left${at}(id: string): Promise<void> { await right${at}(1, id); }
        /** @redisLock businessFlag=right${100 + at} keyName=other,id */
        export async function right${at}(other: number, id: string): Promise<void> { await left${at}(id); }`,
      )}`,
  }),
  "classes with the same methods": (count) => ({
    "base.ts": "export abstract class Handler { async handle(id: string): Promise<string> { return id; } }",
    ...Object.fromEntries(
      Array.from({ length: count }, (_, at) => [
        `handler${100 + at}.ts`,
        `import { Handler } from "./base.js";
        ${at === 0 ? "" : `import { Handler${at - 1} } from "./handler${99 + at}.js";`}
        export class Handler${at} extends Handler {
          ${tag("handle", at)}
          override async handle(id: string): Promise<string> {
            return ${at === 0 ? "id" : `new Handler${at - 1}().handle(id)`};
          }
        }`,
      ]),
    ),
  }),
  "implementations of one interface": (count) => ({
    "a.ts": `
      export interface Store { save(id: string): Promise<void> }
      ${each(
        count,
        (at) => `
        export class Locked${at} implements Store {
          ${tag("save", at)}
          async save(id: string): Promise<void> { await helper(id); }
        }
        export class Plain${at} implements Store {
          async save(id: string): Promise<void> { await helper(id); }
        }`,
      )}
      async function helper(id: string): Promise<void> { await id; }`,
  }),
  "writes to one field, one variable, one list, and one object": (count) => ({
    "a.ts": `
      declare function work(): Promise<number>;
      export class Jobs {
        #last: Promise<number> | undefined;
        readonly #running: Promise<number>[] = [];
        ${tag("start", 0)}
        async start(id: string): Promise<void> {
          let last: Promise<number> | undefined;
          const running: Promise<number>[] = [];
          ${each(
            count,
            (at) => `
            this.#last = work();
            this.#running.push(work());
            last = work();
            running.push(work());
            const job${at} = { done: work() };
            const done${at} = work();`,
          )}
          await id;
        }
      }`,
  }),
  "locks in transactions": (count) => ({
    "typeorm.d.ts": `declare module "typeorm" {
      export interface EntityManager { query(sql: string): Promise<void> }
      export class DataSource { transaction<T>(run: (manager: EntityManager) => Promise<T>): Promise<T> }
    }`,
    "a.ts": `
      import type { DataSource, EntityManager } from "typeorm";
      declare const source: DataSource;
      async function inTransaction<T>(work: (tx: EntityManager) => Promise<T>): Promise<T> {
        return source.transaction((tx) => work(tx));
      }
      ${each(
        count,
        (at) => `
        ${tag("pay", at)}
        async function pay${at}(id: string, { tx }: { tx: EntityManager }): Promise<void> { await tx.query(id); }
        export const run${at} = (): Promise<void> => inTransaction(async (tx) => { await pay${at}("a", { tx }); });`,
      )}`,
  }),
  "tags with one flag": (count) => ({
    "a.ts": each(
      count,
      (at) => `
      ${tag("same", 0)}
      export async function same${at}(id: string): Promise<string> { return id; }`,
    ),
  }),
};

for (const [name, program] of Object.entries(PROGRAMS)) {
  inMatrixSerially(`the analysis of ${name} grows with the program`, async (t) => {
    analyzed(program(2));
    const few = await workOf(async () => analyzed(program(FEW)));
    const many = await workOf(async () => analyzed(program(MANY)));
    t.deepEqual(
      growth(few, many, (runs) => Math.max(runs * RATIO, CHANCE)),
      [],
    );
  });
}
