import { once } from "node:events";
import { KINDS } from "../../stores/postgres/kinds";
import { report } from "./report";

// A process that uses PostgreSQL and listens, and closes its connections when it gets a line. Then nothing keeps it alive.

export interface PostgresConfiguration {
  readonly url: string;
  /** The name of one of the {@link KINDS}. */
  readonly kind: string;
}

export interface PostgresReport {
  readonly event: "listening" | "closed";
}

const { url, kind } = JSON.parse(process.argv[2] ?? "") as PostgresConfiguration;
const port = KINDS.find(({ name }) => name === kind)?.open(url);

void port?.query("SELECT 1", [], 60_000).then(() =>
  port.listen("channel", {
    subscribed: () => report({ event: "listening" }),
    message() {},
    failed() {},
  }),
);

void once(process.stdin, "data").then(async () => {
  process.stdin.destroy();
  await port?.close();
  report({ event: "closed" });
});
