import { connect } from "node:net";
import test from "ava";
import { errorMessage } from "../../runtime/errors";

const refused = (address: string): Error =>
  Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: "ECONNREFUSED" });

class Silent extends Error {
  override readonly name = "Silent";
}

const circle: Error & { cause?: unknown } = new Error("");
circle.cause = circle;

const several = (message: string, ...errors: unknown[]): Error => new AggregateError(errors, message);

for (const [what, thrown, reason] of [
  ["an error", new Error("no route"), "no route"],
  ["text", "no route", "'no route'"],
  ["an object", { password: "hunter2" }, "{ password }"],
  ["nothing", undefined, "undefined"],
  [
    "a connection that is refused at each address",
    several("", refused("::1:6379"), refused("127.0.0.1:6379")),
    "connect ECONNREFUSED ::1:6379; connect ECONNREFUSED 127.0.0.1:6379",
  ],
  [
    "several errors with words of their own",
    several("no node", new Error("a"), new Error("b")),
    "no node: a; b",
  ],
  ["several times the same error", several("", new Error("a"), new Error("a")), "a"],
  ["several errors in one of several", several("", several("x", new Error("a")), "b"), "x: a; 'b'"],
  ["no error of several", several("no node"), "no node"],
  ["an error with a code alone", Object.assign(new Error(""), { code: "ECONNRESET" }), "ECONNRESET"],
  ["an error with a cause alone", new Error("", { cause: new Error("no route") }), "no route"],
  ["an error with a name alone", new Silent(""), "Silent"],
  ["an error that is its own cause", circle, "Error"],
  ["an error with a URL", new Error("cannot read redis://app:hunter2@h"), "cannot read redis://***@h"],
  [
    "an error that throws when it is read",
    Object.defineProperty(new Error("x"), "message", {
      get() {
        throw new Error("nobody may look");
      },
    }),
    "Error",
  ],
] as const) {
  test(`the reason of ${what} is told`, (t) => {
    t.is(errorMessage(thrown), reason);
  });
}

test("the reason of a connection that Node itself tried at two addresses is told", async (t) => {
  const socket = connect({
    host: "both",
    port: 1,
    autoSelectFamily: true,
    lookup: (_host, _options, tell) =>
      tell(null, [
        { address: "127.0.0.1", family: 4 },
        { address: "127.0.0.2", family: 4 },
      ]),
  });
  const error = await new Promise<unknown>((resolve) => socket.once("error", resolve));
  t.is(errorMessage(error), "connect ECONNREFUSED 127.0.0.1:1; connect ECONNREFUSED 127.0.0.2:1");
});
