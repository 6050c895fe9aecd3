import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import test, { type ExecutionContext } from "ava";
import { LockOptionError } from "../../runtime/base/errors";
import { newId, newKey, acquire } from "../store-contract/subject";
import { connectionTo, type RedisAddress } from "../../runtime/stores/redis/address";
import { optionsOf } from "../../runtime/stores/redis/ioredis/options";
import { redisStoreAt } from "../../runtime/stores/redis/redis";
import { URL_LIBRARIES } from "../support/client-libraries";
import { freePort, remove, startRedis, temporaryDirectory, type RedisServer } from "../support/redis-server";
import { UNTRUSTED } from "./untrusted";

// Each form of address, with a real server.

let server: RedisServer;
let dir: string;
let socket: string;
let tlsPort: number;

test.before(async () => {
  dir = await temporaryDirectory();
  [socket, tlsPort] = [join(dir, "red is.sock"), await freePort()];
  const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  await writeFile(key, UNTRUSTED.key);
  await writeFile(cert, UNTRUSTED.cert);
  const tls = { "tls-port": tlsPort, "tls-key-file": key, "tls-cert-file": cert, "tls-ca-cert-file": cert };
  const options = { ...tls, "tls-auth-clients": "no", unixsocket: socket };
  server = await startRedis(
    ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]),
  );
  await server.client().call("ACL", "SETUSER", "app", "on", ">p@ss/w", "allkeys", "allchannels", "+@all");
});

test.after.always(async () => {
  await server.stop();
  await remove(dir);
});

/** Returns the user and the database that a store at this address uses. */
async function arrival(t: ExecutionContext, address: RedisAddress): Promise<string> {
  const store = redisStoreAt(address);
  t.teardown(() => store.close());
  const key = newKey();
  t.true((await acquire(store, key, newId())).acquired);
  const connections = String(await server.client().client("LIST")).split("\n");
  const own = connections.find((line) => / cmd=eval(?:sha)? /.test(line));
  const [, user] = / user=(\S+)/.exec(own ?? "") ?? [];
  const found: string[] = [];
  for (const db of [0, 3]) {
    const client = server.client({ connectionName: `db${db}` });
    await client.select(db);
    if ((await client.exists(key)) === 1) found.push(String(db));
  }
  await store.close();
  return `${user} in ${found.join()}`;
}

const AT_SOCKET = (): string => encodeURI(socket);

for (const { title, at } of URL_LIBRARIES) {
  test.serial(`${title}redis:// URLs connect with their user, password, and database`, async (t) => {
    const host = `127.0.0.1:${server.port}`;
    t.is(await arrival(t, at(`redis://${host}`)), "default in 0");
    t.is(await arrival(t, at(`redis://app:p%40ss%2Fw@${host}/3`)), "app in 3");
    t.is(await arrival(t, at(`redis://${host}?username=app&password=p%40ss%2Fw&db=3`)), "app in 3");
  });

  test.serial(
    `${title}unix:// URLs connect to a socket, with the user, password, and database as other clients write them`,
    async (t) => {
      t.is(await arrival(t, at(`unix://${AT_SOCKET()}`)), "default in 0");
      t.is(await arrival(t, at(`redis+unix://${AT_SOCKET()}?db=3`)), "default in 3");
      t.is(await arrival(t, at(`unix://app:p%40ss%2Fw@${AT_SOCKET()}?db=3`)), "app in 3");
      t.is(await arrival(t, at(`unix://app@${AT_SOCKET()}?password=p%40ss%2Fw`)), "app in 0");
      t.is(await arrival(t, at(`unix://${AT_SOCKET()}?user=app&pass=p%40ss%2Fw&db=3`)), "app in 3");
    },
  );

  test.serial(
    `${title}the \`tls\` option takes the options of Node's tls.connect(), for redis:// and rediss://`,
    async (t) => {
      const tls = { ca: UNTRUSTED.cert };
      t.is(await arrival(t, at(`rediss://localhost:${tlsPort}`, { tls })), "default in 0");
      t.is(await arrival(t, at(`redis://app:p%40ss%2Fw@localhost:${tlsPort}/3`, { tls })), "app in 3");
      const distrustful = redisStoreAt(at(`rediss://localhost:${tlsPort}`, { tls: {} }));
      t.teardown(() => distrustful.close());
      await t.throwsAsync(acquire(distrustful, newKey(), newId()), { message: /self-signed certificate/ });
    },
  );
}

test.serial("a URL without other options connects with the library that package.json declares", async (t) => {
  t.is(await arrival(t, server.url), "default in 0");
  t.is(await arrival(t, { url: server.url }), "default in 0");
});

test("node-redis rejects a parameter that only ioredis knows, and names the fix", (t) => {
  const address = { url: "redis://a?keyPrefix=app:&enableReadyCheck=hunter2", client: "redis" } as const;
  const message =
    /^The URL in `redis` has a parameter that node-redis does not know: "enableReadyCheck"\. Fix: remove it\./;
  const error = t.throws(() => redisStoreAt(address), { instanceOf: LockOptionError, message });
  t.false(inspect(error, { depth: 10, showHidden: true }).includes("hunter2"));
});

for (const { title, at } of URL_LIBRARIES) {
  for (const name of ["connectTimeout", "family"]) {
    test(`${title}the error for a parameter that should be a number names it: ${name}`, (t) => {
      const error = t.throws(() => redisStoreAt(at(`redis://a?${name}=hunter2`)), {
        instanceOf: LockOptionError,
        message: new RegExp(
          `^Expected the parameter \`${name}\` of the URL in \`redis\` to be a number.*Fix: `,
        ),
      });
      t.false(inspect(error, { depth: 10, showHidden: true }).includes("hunter2"));
    });
  }
}

test("the error for an invalid address contains no password", (t) => {
  for (const address of [
    "unix:hunter2",
    "unix://app:hunter2@/",
    "unix://app:hunter2",
    "unix://app:hunter/2@/run/redis.sock",
    "unix://:hunter2@host/run/redis.sock",
    "unix:///run/redis.sock?db=hunter2",
    "unix:///run/redis.sock?passwrd=hunter2",
    "unix://app:%hunter2@/run/redis.sock",
    { url: "redis://localhost", password: "hunter2" },
    { url: "redis://localhost", tls: "hunter2" },
    { url: "redis://localhost", client: "hunter2" },
    { url: "http://app:hunter2@localhost" },
    "redis://app:12?hunter2@localhost",
    "redis://app:12#hunter2@localhost",
    "redis://localhost#hunter2",
    { url: 6379, tls: { passphrase: "hunter2" } },
  ]) {
    const error = t.throws(() => redisStoreAt(address as RedisAddress), { instanceOf: LockOptionError });
    t.false(inspect(error, { depth: 10, showHidden: true }).includes("hunter2"), inspect(address));
  }
  t.throws(() => redisStoreAt({ url: "redis://a", user: "app" } as RedisAddress), {
    message:
      'Expected `redis` to be { url: "rediss://...", tls: { ca } }, got { url, user }. Fix: correct `user`. `tls` takes the options of Node\'s tls.connect()',
  });
});

const [ONE, TWO] = [
  { host: "a", port: 26_379 },
  { host: "::1", port: 1 },
];

/** `faults/sentinel.test.ts` tests such a URL with real sentinels. */
const PARSED: Readonly<Record<string, object>> = {
  "redis://": {},
  "REDIS://a": { host: "a" },
  "Rediss+Sentinel://:Secret@a/Locks": {
    sentinels: { hosts: [ONE], name: "Locks" },
    password: "Secret",
    tls: {},
  },
  "redis://a?family=6": { host: "a", parameters: { family: "6" } },
  "rediss://us%3Aer:p%40ss@[::1]:1/3?db=4": {
    host: "::1",
    port: 1,
    username: "us:er",
    password: "p@ss",
    database: 3,
    tls: {},
  },
  "redis+sentinel://a/locks": { sentinels: { hosts: [ONE], name: "locks" } },
  "redis+sentinel://a,[::1]:1/locks/3": { sentinels: { hosts: [ONE, TWO], name: "locks" }, database: 3 },
  "redis+sentinel://us%3Aer:p%40ss@a/lo%2Fcks": {
    sentinels: { hosts: [ONE], name: "lo/cks" },
    username: "us:er",
    password: "p@ss",
  },
  "rediss+sentinel://:secret@a/locks?sentinel_username=s&sentinel_password=p%26": {
    sentinels: { hosts: [ONE], name: "locks", username: "s", password: "p&" },
    password: "secret",
    tls: {},
  },
};

for (const [url, connection] of Object.entries(PARSED)) {
  test(`parses ${url}`, (t) => {
    t.deepEqual(connectionTo(url, "redis"), { parameters: {}, ...connection });
  });
}

test("TLS options with a sentinel URL apply to the sentinels and to the servers", (t) => {
  const tls = { ca: "CA" };
  const connection = connectionTo({ url: "redis+sentinel://:secret@a/locks/3", tls }, "redis");
  t.deepEqual(optionsOf(connection), {
    sentinels: [ONE],
    name: "locks",
    failoverDetector: true,
    sentinelCommandTimeout: 2_000,
    password: "secret",
    db: 3,
    tls,
    sentinelTLS: tls,
    enableTLSForSentinelMode: true,
  });
});

for (const url of [
  "redis+sentinel://:secret@/locks",
  "redis+sentinel://:secret@a",
  "redis+sentinel://:secret@a/locks/x",
  "redis+sentinel://:secret@a,/locks",
  "redis+sentinel://:secret@a:port/locks",
  "redis+sentinel://:secret@a/locks?role=slave",
  "redis+sentinel://:secret@a/%",
]) {
  test(`rejects ${url} without showing its password`, (t) => {
    const error = t.throws(() => redisStoreAt(url), { instanceOf: LockOptionError });
    t.regex(
      error.message,
      /such as redis\+sentinel:\/\/user:password@host:26379,host2:26379\/master\/0, got "redis\+sentinel:\/\/\*\*\*"/,
    );
    t.notRegex(error.message, /secret/);
  });
}
