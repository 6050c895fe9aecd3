import test from "ava";
import ts from "typescript";
import { declaredTags, tagsOfSource, type DeclaredTag } from "../../../transformer/read/declared-tags";

const shown = (text: string, tags: readonly DeclaredTag[]): string[] =>
  tags.map(({ start, end, flag, name = "-" }) => `${text.slice(start, end)} ${flag} ${name}`);

const declared = (text: string): string[] =>
  shown(text, declaredTags({ ts, file: ts.createSourceFile("a.d.ts", text, ts.ScriptTarget.Latest) }));

const ofSource = (text: string): string[] => shown(text, tagsOfSource(ts, "a.ts", text));

test("a tag in a declaration file is read with its business flag and its function's name", (t) => {
  const text = `/** @redisLock lockTime=20 businessFlag=pay keyName=id */
export declare function pay(id: string): Promise<void>;
export declare class Orders {
  /** @redisLock businessFlag=order */
  close(): Promise<void>;
}`;
  t.deepEqual(declared(text), ["@redisLock pay pay", "@redisLock order Orders.close"]);
});

test("a tag in a source file is read with the same data, even if its function is not exported", (t) => {
  const text = `/** @redisLock lockTime=20 businessFlag=pay */
async function pay(): Promise<void> {}`;
  t.deepEqual(ofSource(text), ["@redisLock pay pay"]);
  t.deepEqual(ofSource("async function pay(): Promise<void> {}"), []);
});

test("a tag with a whole key is read with the fixed text of the key instead of a flag", (t) => {
  const tag = '/** @redisLock key="mutex:${tenant}/${`${id}}`}" */\n';
  t.deepEqual(declared(`${tag}export declare function pay(tenant: string, id: string): Promise<void>;`), [
    "@redisLock mutex:${}/${} pay",
  ]);
  t.deepEqual(ofSource(`${tag}export async function pay(tenant: string, id: string): Promise<void> {}`), [
    "@redisLock mutex:${}/${} pay",
  ]);
});

test("a tag with an error is skipped, because its own project reports it", (t) => {
  const wrong = "/** @redisLock businessFlag=pay keyName= */\n";
  t.deepEqual(declared(`${wrong}export declare function pay(): Promise<void>;`), []);
  t.deepEqual(ofSource(`${wrong}export async function pay(): Promise<void> {}`), []);
  t.deepEqual(declared("/** @redisLock */\nexport declare function pay(): Promise<void>;"), []);
});
