import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect, promisify } from "node:util";
import test, { type ExecutionContext } from "ava";
import { LockError } from "../../runtime/base/errors";
import { FleetProcess } from "../support/fleet";
import { freePort, startRedis } from "../support/redis-server";
import { retire } from "../support/retire";
import { until } from "../support/until";

// The message, the cause, and one log line say why a Redis that is given by URL cannot be used. None of them contains the
// password.

const SECRET = "s3cr3t-w0rd";

interface Reason {
  /** The URL of such a Redis, with a password. */
  url(t: ExecutionContext): Promise<string>;
  readonly code: string;
  readonly words: RegExp;
}

const REASONS: Record<string, Reason> = {
  "the password is wrong": {
    async url(t) {
      const server = await startRedis("--requirepass", "another");
      t.teardown(server.stop);
      return `redis://:${SECRET}@127.0.0.1:${server.port}`;
    },
    code: "LOCK_MISCONFIGURED",
    words: /WRONGPASS/,
  },
  "the connection is refused": {
    url: async () => `redis://app:${SECRET}@127.0.0.1:${await freePort()}`,
    code: "LOCK_UNREACHABLE",
    words: /ECONNREFUSED/,
  },
  "the host is unknown": {
    // An invalid name, so no server is asked for it.
    url: async () => `redis://app:${SECRET}@${"x".repeat(64)}.invalid:6379`,
    code: "LOCK_UNREACHABLE",
    words: /ENOTFOUND|EAI_AGAIN/,
  },
  "the certificate is not trusted": {
    async url(t) {
      const port = await freePort();
      const { cert, key } = await selfSigned(t);
      const files = ["--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no"];
      const server = await startRedis("--tls-port", String(port), ...files);
      t.teardown(server.stop);
      return `rediss://app:${SECRET}@localhost:${port}`;
    },
    code: "LOCK_UNREACHABLE",
    words: /self.signed certificate/,
  },
};

async function selfSigned(t: ExecutionContext): Promise<{ readonly cert: string; readonly key: string }> {
  const dir = await mkdtemp(join(tmpdir(), "certificate-"));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
  const files = ["-keyout", key, "-out", cert];
  await promisify(execFile)("openssl", ["req", "-x509", ...kind, "-subj", "/CN=localhost", ...files]);
  return { cert, key };
}

for (const [name, { url, code, words }] of Object.entries(REASONS)) {
  test(`the error, its cause, and one log line say without the password that ${name}`, async (t) => {
    const logged: string[] = [];
    const logger = { warn: (line: string): void => void logged.push(line) };
    const process = new FleetProcess({ redis: await url(t), logger });
    t.teardown(() => retire(process));
    await t.throwsAsync(process.call("LOCK_first", { retryTimes: 1, waitTime: "300ms" }, () => t.fail()));
    // On a busy machine, the first call may fail before the reason is known.
    await until(() => logged.some((line) => words.test(line)));
    for (let call = 1; call <= 2; call += 1) {
      const error = await t.throwsAsync<LockError>(
        process.call(`LOCK_${call}`, { retryTimes: 1, waitTime: "5s" }, () => t.fail()),
        { instanceOf: LockError, code, message: words },
      );
      t.true(error.cause instanceof Error);
      t.regex(inspect(error.cause), words);
      t.false(inspect(error, { depth: 9, showHidden: true }).includes(SECRET));
    }
    t.is(logged.filter((line) => words.test(line)).length, 1, logged.join("\n"));
    t.false(logged.join("\n").includes(SECRET));
  });
}
