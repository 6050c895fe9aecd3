import { connect } from "node:net";
import test from "ava";
import { errorMessage } from "../../runtime/base/errors";

const refused = (address: string): Error =>
  Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: "ECONNREFUSED" });

class Silent extends Error {
  override readonly name = "Silent";
}

const circular: Error & { cause?: unknown } = new Error("");
circular.cause = circular;

const aggregate = (message: string, ...errors: unknown[]): Error => new AggregateError(errors, message);

for (const [what, thrown, reason] of [
  ["an error", new Error("no route"), "no route"],
  ["text", "no route", "'no route'"],
  ["an object", { password: "hunter2" }, "{ password }"],
  ["undefined", undefined, "undefined"],
  [
    "a connection that is refused at each address",
    aggregate("", refused("::1:6379"), refused("127.0.0.1:6379")),
    "connect ECONNREFUSED ::1:6379; connect ECONNREFUSED 127.0.0.1:6379",
  ],
  [
    "an AggregateError with a message of its own",
    aggregate("no node", new Error("a"), new Error("b")),
    "no node: a; b",
  ],
  ["an AggregateError with the same error twice", aggregate("", new Error("a"), new Error("a")), "a"],
  ["an AggregateError inside another one", aggregate("", aggregate("x", new Error("a")), "b"), "x: a; 'b'"],
  ["an AggregateError without errors", aggregate("no node"), "no node"],
  ["an error with only a code", Object.assign(new Error(""), { code: "ECONNRESET" }), "ECONNRESET"],
  ["an error with only a cause", new Error("", { cause: new Error("no route") }), "no route"],
  ["an error with only a name", new Silent(""), "Silent"],
  ["an error that is its own cause", circular, "Error"],
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
  test(`errorMessage() describes ${what}`, (t) => {
    t.is(errorMessage(thrown), reason);
  });
}

test("errorMessage() names both addresses that Node tried to connect to", async (t) => {
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
