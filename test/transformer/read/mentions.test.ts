import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";

/** The words at which it is an error. */
function refused(comment: string): string[] {
  const text = `/** ${comment} */\nexport async function pay() {}`;
  const { diagnostics = [] } = weave("a.ts", text, { ts, module: "esm" }) ?? {};
  return diagnostics.map(({ start, end }) => text.slice(start, end));
}

test("the tag in braces, inside of a sentence, is a mention, whatever follows", (t) => {
  for (const sentence of ["See {@redisLock: the tag}.", "Like {@redisLock}: locked."]) {
    t.deepEqual(refused(sentence), [], sentence);
  }
});

test("the tag with a colon inside of a sentence is no mention, also where braces are not right before it", (t) => {
  for (const sentence of ["See @redisLock: the tag.", "See { @redisLock: the tag }.", "{}@redisLock: x"]) {
    t.deepEqual(refused(sentence), ["@redisLock"], sentence);
  }
});

test("what only begins like the tag, in letters of any alphabet or without the `@`, is a mention", (t) => {
  for (const sentence of [
    "@r\u00e9f\u00e9rence key=a",
    "@\u0440\u0435\u0434\u0438\u0441 key=a",
    "\uff20all: redisLock",
    "redisLock key = 'a' + id",
    "redlock key='a'",
    "redisLock takes the key.",
  ]) {
    t.deepEqual(refused(sentence), [], sentence);
  }
});

test("outside of JSDoc, a blank behind the `@` is prose where no attribute follows", (t) => {
  const text = "// @ redlock, see there\nexport async function pay() {}";
  t.is(weave("a.ts", text, { ts, module: "esm" }), undefined);
});

test("a name with the tag's in it, or with its letters in another order, is a mention where a key follows", (t) => {
  for (const name of ["@withRedisLock", "@useRedisLock", "@redisLockable", "@reidsLcok", "@redsiLokc"]) {
    t.deepEqual(refused(`${name} key="pay:\${id}"`), [name], name);
    t.deepEqual(refused(name), [], name);
  }
  for (const sentence of ['@lock key="a"', '@param key="redisLock"', "@withRedisLock takes a key"])
    t.deepEqual(refused(sentence), [], sentence);
});
