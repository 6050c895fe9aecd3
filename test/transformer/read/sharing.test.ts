import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";

const SITES = `export class Api {
  /** @redisLock businessFlag=api keyName=tenant permits=5 */
  async call(tenant: string) {}
  /** @redisLock businessFlag=api keyName=tenant permits=5 */
  async callAgain(tenant: string) {}
  /** @redisLock businessFlag=api keyName=tenant,user permits=6 */
  async ofAnotherKey(tenant: string, user: string) {}
  /** @redisLock businessFlag=mail keyName=tenant permits=6 */
  async ofAnotherFlag(tenant: string) {}
  /** @redisLock businessFlag=api keyName=tenant */
  async alone(tenant: string) {}
  /** @redisLock businessFlag=api keyName=tenant SHARING */
  async other(tenant: string) {}
}`;

const problemsFor = (sharing: string): readonly (readonly [string, string])[] => {
  const text = SITES.replace("SHARING", sharing);
  const { diagnostics = [] } = weave("api.ts", text, { ts, module: "esm" }) ?? {};
  return diagnostics.map(({ start, end, message }) => [text.slice(start, end), message] as const);
};

test("two tags in a file that may share a key with different numbers of permits are an error", (t) => {
  t.deepEqual(problemsFor("permits=5"), []);
  t.deepEqual(problemsFor("mode=write"), []);
  for (const sharing of ["permits=6", "mode=read"]) {
    t.deepEqual(problemsFor(sharing), [
      [
        sharing,
        `A lock with \`${sharing}\` here and one with \`permits=5\` at \`Api.call\` may have the same key. If they do, the smaller number applies. Fix: use the same number, or give one of them another \`businessFlag\`.`,
      ],
    ]);
  }
});

test("each key of a tag with each=true may be the key of a tag with one part", (t) => {
  const [first] = problemsFor("permits=5 each=true");
  t.is(first, undefined);
  const [[at, message] = ["", ""], another] = problemsFor("permits=6 each=true");
  t.is(at, "permits=6");
  t.regex(message, /and one with `permits=5` at `Api\.call` may have the same key/);
  t.is(another, undefined);
  const ofTwo = SITES.replace("keyName=tenant SHARING", "keyName=tenant,tenant permits=6 each=true");
  const { diagnostics = [] } = weave("api.ts", ofTwo, { ts, module: "esm" }) ?? {};
  t.deepEqual(
    diagnostics.map(({ code }) => code),
    ["LW1124"],
  );
});
