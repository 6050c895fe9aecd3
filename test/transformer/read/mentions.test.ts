import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";

/** The words of a comment that are reported as errors. */
function errorsIn(comment: string): string[] {
  const text = `/** ${comment} */\nexport async function pay() {}`;
  const { diagnostics = [] } = weave("a.ts", text, { ts, module: "esm" }) ?? {};
  return diagnostics.map(({ start, end }) => text.slice(start, end));
}

test("the tag in braces inside a sentence is a mention, whatever follows it", (t) => {
  for (const sentence of ["See {@redisLock: the tag}.", "Like {@redisLock}: locked."]) {
    t.deepEqual(errorsIn(sentence), [], sentence);
  }
});

test("the tag with a colon inside a sentence is an error unless a brace is right before it", (t) => {
  for (const sentence of ["See @redisLock: the tag.", "See { @redisLock: the tag }.", "{}@redisLock: x"]) {
    t.deepEqual(errorsIn(sentence), ["@redisLock"], sentence);
  }
});

test("a word that only begins like the tag, in any alphabet or without `@`, is a mention", (t) => {
  for (const sentence of [
    "@r\u00e9f\u00e9rence key=a",
    "@\u0440\u0435\u0434\u0438\u0441 key=a",
    "\uff20all: redisLock",
    "redisLock key = 'a' + id",
    "redlock key='a'",
    "redisLock takes the key.",
  ]) {
    t.deepEqual(errorsIn(sentence), [], sentence);
  }
});

test("a space after the `@` outside of JSDoc is prose if no attribute follows", (t) => {
  const text = "// @ redlock, see there\nexport async function pay() {}";
  t.is(weave("a.ts", text, { ts, module: "esm" }), undefined);
});

test("a name that contains the tag or mixes up its letters is an error only if a key follows", (t) => {
  for (const name of ["@withRedisLock", "@useRedisLock", "@redisLockable", "@reidsLcok", "@redsiLokc"]) {
    t.deepEqual(errorsIn(`${name} key="pay:\${id}"`), [name], name);
    t.deepEqual(errorsIn(name), [], name);
  }
  for (const sentence of ['@lock key="a"', '@param key="redisLock"', "@withRedisLock takes a key"])
    t.deepEqual(errorsIn(sentence), [], sentence);
});
