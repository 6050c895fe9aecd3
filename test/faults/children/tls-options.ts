import { configure, shutdown, withLock } from "../../../runtime";
import { report } from "./report";

// A process that asks for a lock over TLS options that Node refuses, one after the other, and is not stopped by any.

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
  // Still at it when it is told to end.
  configure({ redis: { url, tls: variants[0]?.[1] ?? {} }, logger: { warn: () => {} }, woven: false });
  await withLock("LOCK_tls", { waitTime: "20s" }, () => "in").catch(() => {});
  report({ event: "listens" });
})();
