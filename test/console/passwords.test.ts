import test from "ava";
import * as fc from "fast-check";
import { openDeployment, type Target } from "../../transformer/console/open-deployment";
import { startRedis } from "../support/redis-server";
import { Programs } from "./programs";

// No output of the console contains a password, whatever the form of the URL, and whatever the server answers.

/** The two ends of each password. No other text contains them. */
const [BEGINNING, END] = ["qzx7kq", "w9vjqw"];

const password = fc
  .array(
    fc.constantFrom("@", "/", ":", "?", "#", "%", "&", "=", " ", "+", "'", '"', "`", "\u001B[2J", "é", "\\"),
    {
      maxLength: 3,
    },
  )
  .map((between) => `${BEGINNING}${between.join("")}${END}`);

const FORMS: Readonly<Record<string, (secret: string, host: string) => string>> = {
  "a password alone": (secret, host) => `redis://:${secret}@${host}`,
  "a user and a password": (secret, host) => `redis://app:${secret}@${host}/0`,
  "a user alone": (secret, host) => `redis://${secret}@${host}`,
  TLS: (secret, host) => `rediss://app:${secret}@${host}`,
  "a parameter": (secret, host) => `redis://${host}?password=${secret}`,
  "a parameter of another name": (secret, host) => `redis://${host}/0?authToken=${secret}`,
  Sentinel: (secret, host) => `redis+sentinel://app:${secret}@${host}/mymaster`,
  "the sentinels themselves": (secret, host) =>
    `redis+sentinel://${host}/mymaster?sentinel_username=app&sentinel_password=${secret}`,
  "a socket": (secret) => `unix://app:${secret}@/tmp/nobody-listens.sock`,
  "a socket's parameter": (secret) => `unix:///tmp/nobody-listens.sock?password=${secret}`,
  "no scheme": (secret, host) => `app:${secret}@${host}`,
  "another scheme": (secret, host) => `http://app:${secret}@${host}`,
};

const POSTGRES_FORMS: typeof FORMS = {
  "a user and a password": (secret, host) => `postgres://app:${secret}@${host}/shop`,
  "another scheme": (secret, host) => `postgresql://app:${secret}@${host}/shop?sslmode=disable`,
  "a parameter": (secret, host) => `postgres://app@${host}/shop?password=${secret}`,
  "parameters of other names": (secret, host) =>
    `postgres://${host}/shop?sslpassword=${secret}&token=${secret}#${secret}`,
  "several hosts": (secret, host) => `postgres://app:${secret}@${host},${host}/shop`,
  "no scheme": (secret, host) => `app:${secret}@${host}`,
  "the scheme of Redis": (secret, host) => `redis://app:${secret}@${host}`,
};

const TARGETS: readonly [name: string, forms: typeof FORMS, at: (url: string) => Target][] = [
  ["Redis", FORMS, (url) => ({ redis: [url], match: "*", prefix: "" })],
  ["PostgreSQL", POSTGRES_FORMS, (postgres) => ({ postgres, match: "*", schema: "lockweave" })],
];

for (const [name, forms, at] of TARGETS) {
  test(`no error about an unreachable ${name} contains a part of a password`, async (t) => {
    const urls = fc
      .tuple(fc.constantFrom(...Object.entries(forms)), password, fc.boolean())
      .map(([[form, url], secret, isEncoded]) => ({
        form,
        url: url(isEncoded ? encodeURIComponent(secret) : secret, "127.0.0.1:1"),
      }));
    await fc.assert(
      fc.asyncProperty(urls, async ({ form, url }) => {
        const error = await openDeployment(at(url)).then(
          () => new Error("it was reached"),
          (reason: unknown) => reason as Error,
        );
        t.is(error.name, "Error", `${form}: ${error.stack}`);
        if (error.message.includes(BEGINNING) || error.message.includes(END))
          throw new Error(`${form}: ${url}: ${error.message}`);
      }),
      { numRuns: 200, seed: 32 },
    );
    t.pass();
  });
}

test.serial("no command prints a password that the server refuses or repeats", async (t) => {
  const secret = `${BEGINNING}@${END}`;
  const servers = [
    // The first answers that the password is wrong, and the second repeats what it was sent.
    await startRedis("--requirepass", "another"),
    await startRedis("--rename-command", "AUTH", ""),
  ];
  const programs = new Programs("");
  try {
    for (const { port } of servers) {
      for (const args of [["top"], ["release", "LOCK_a"]]) {
        const url = `redis://app:${encodeURIComponent(secret)}@127.0.0.1:${port}`;
        const { code, stdout, stderr } = await programs.lockweave([...args, "--redis", url]);
        t.is(code, 2, stdout + stderr);
        t.regex(stderr, /^lockweave: Cannot read redis:\/\/127\.0\.0\.1:\d+: /);
        t.false((stdout + stderr).includes(BEGINNING) || (stdout + stderr).includes(END), stderr);
      }
    }
  } finally {
    await programs.end();
    for (const server of servers) await server.stop();
  }
});
