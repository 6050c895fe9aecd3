import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "ava";
import { startChild } from "../support/child";
import { startRedis } from "../support/redis-server";
import type { TlsOptionsReport } from "./children/tls-options";

const dir = mkdtempSync(join(tmpdir(), "tls-"));
test.after.always(() => rmSync(dir, { recursive: true, force: true }));

function openssl(...args: readonly string[]): void {
  execFileSync("openssl", args, { cwd: dir, stdio: "ignore" });
}

const read = (name: string): string => readFileSync(join(dir, name), "utf8");

test("TLS options that Node rejects are reported immediately and do not freeze the process", async (t) => {
  const certificate = ["-days", "1", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"];
  openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", ...certificate);
  openssl("genrsa", "-out", "other.pem", "2048");
  openssl("rsa", "-aes256", "-passout", "pass:secret", "-in", "key.pem", "-out", "encrypted.pem");
  const [cert, key, encrypted] = [read("cert.pem"), read("key.pem"), read("encrypted.pem")];
  const variants: readonly (readonly [string, object])[] = [
    [
      "an unreadable key",
      { cert, key: "-----BEGIN PRIVATE KEY-----\nbm90IGEga2V5\n-----END PRIVATE KEY-----\n" },
    ],
    ["an encrypted key without its passphrase", { cert, key: encrypted }],
    ["a wrong passphrase", { cert, key: encrypted, passphrase: "another" }],
    [
      "an invalid certificate",
      { cert: "-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n", key },
    ],
    ["the key of another certificate", { cert, key: read("other.pem") }],
    ["unknown ciphers", { ciphers: "NO-SUCH-CIPHER" }],
    ["an invalid pfx", { pfx: "no pfx" }],
  ];
  const server = await startRedis();
  t.teardown(server.stop);
  const child = startChild<TlsOptionsReport>("tls-options.ts", {
    url: `rediss://localhost:${server.port}`,
    variants,
  });
  t.teardown(() => child.kill());
  await child.reported(({ event }) => event === "listens");
  child.signal("SIGTERM");
  t.is((await child.ended).code, 0, "its signal handler runs");
  const refused = child.reports.flatMap((report) => (report.event === "refused" ? [report] : []));
  t.deepEqual(
    refused.map(({ name, code }) => [name, code]),
    variants.map(([name]) => [name, "LOCK_MISCONFIGURED"]),
  );
  for (const { message } of refused)
    t.regex(message, /Node rejected the TLS options of the connection \(.+\)\. Fix: check its key/);
});
