import { configure, shutdown, withLock } from "../../../runtime";
import { report } from "./report";

// A process that tries one variant of TLS options after the other, all of which Node rejects, and keeps running.

interface TlsOptionsConfiguration {
  readonly url: string;
  readonly variants: readonly (readonly [name: string, tls: object])[];
}

export type TlsOptionsReport =
  | { readonly event: "refused"; readonly name: string; readonly code: string; readonly message: string }
  | { readonly event: "listens" };

const { url, variants } = JSON.parse(process.argv[2] ?? "") as TlsOptionsConfiguration;

process.once("SIGTERM", () => process.exit(0));

void (async () => {
  for (const [name, tls] of variants) {
    configure({ redis: { url, tls }, logger: { warn: () => {} }, woven: false });
    const error: unknown = await withLock("LOCK_tls", { waitTime: "20s" }, () => "in").catch(
      (thrown) => thrown,
    );
    const { code = "", message } = error as { readonly code?: string; readonly message: string };
    report({ event: "refused", name, code, message });
    await shutdown();
  }
  // It still tries when it gets SIGTERM.
  configure({ redis: { url, tls: variants[0]?.[1] ?? {} }, logger: { warn: () => {} }, woven: false });
  await withLock("LOCK_tls", { waitTime: "20s" }, () => "in").catch(() => {});
  report({ event: "listens" });
})();
