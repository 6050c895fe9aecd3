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

const told = (sharing: string): readonly (readonly [string, string])[] => {
  const text = SITES.replace("SHARING", sharing);
  const { diagnostics = [] } = weave("api.ts", text, { ts, module: "esm" }) ?? {};
  return diagnostics.map(({ start, end, message }) => [text.slice(start, end), message] as const);
};

test("who may share a key with another number than others in the file is told so", (t) => {
  t.deepEqual(told("permits=5"), []);
  t.deepEqual(told("mode=write"), []);
  for (const sharing of ["permits=6", "mode=read"]) {
    t.deepEqual(told(sharing), [
      [
        sharing,
        `\`${sharing}\` here and \`permits=5\` at \`Api.call\` may have the same key. The smaller number would apply. Make them the same, or give one of them another \`businessFlag\`.`,
      ],
    ]);
  }
});

test("of several keys each part is one, and meets those of one part", (t) => {
  const [first] = told("permits=5 each=true");
  t.is(first, undefined);
  const [[at, message] = ["", ""], another] = told("permits=6 each=true");
  t.is(at, "permits=6");
  t.regex(message, /and `permits=5` at `Api\.call` may have the same key/);
  t.is(another, undefined);
  const ofTwo = SITES.replace("keyName=tenant SHARING", "keyName=tenant,tenant permits=6 each=true");
  const { diagnostics = [] } = weave("api.ts", ofTwo, { ts, module: "esm" }) ?? {};
  t.deepEqual(
    diagnostics.map(({ code }) => code),
    ["LW1124"],
  );
});
