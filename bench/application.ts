import { writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The number of files that import each other. With a longer chain, TypeScript's own search for the importers of a changed file overflows
 * the stack.
 */
const PART = 1_000;

/** Writes the sources of an application with `files` services into `src`. One in `taggedOf` files has tags. */
export function writeApplication(project: string, files: number, taggedOf: number): void {
  // Every application configures where its locks live.
  writeFileSync(
    join(project, "src/main.ts"),
    `import { configure, memoryStore } from "lockweave";\nconfigure({ store: memoryStore() });\n`,
  );
  for (let file = 0; file < files; file += 1) {
    writeFileSync(join(project, `src/service-${file}.ts`), service(file, file % taggedOf === 0));
  }
}

function service(file: number, isTagged: boolean): string {
  const uses = [1, 7, 31].filter((step) => file % PART >= step).map((step) => file - step);
  const tag = (attributes: string): string =>
    isTagged ? `  /** @redisLock businessFlag=service${file} ${attributes} */\n` : "";
  return `${uses.map((other) => `import { Service${other}, type Order${other} } from "./service-${other}.js";`).join("\n")}
export interface Order${file} { id: string; lines: { sku: string; count: number; price: number }[]; customer: { id: number; tier?: "gold" | "silver" } }
export class Service${file} {
  readonly #orders = new Map<string, Order${file}>();
${uses.map((other) => `  readonly service${other} = new Service${other}();`).join("\n")}
${tag("keyName=order.id lockTime=20")}  async place(order: Order${file}): Promise<number> {
    const total = order.lines.reduce((sum, line) => sum + line.count * line.price, 0);
    this.#orders.set(order.id, { ...order, lines: order.lines.filter((line) => line.count > 0) });
    if (order.customer.tier === "gold") return this.discount(total);
    return total;
  }
${tag("keyName=id,customer.id")}  async cancel(id: string, customer: Order${file}["customer"]): Promise<boolean> {
    const order = this.#orders.get(id);
    if (order === undefined || order.customer.id !== customer.id) return false;
    return this.#orders.delete(id);
  }
  async discount(total: number): Promise<number> {
    const rates = { gold: 0.9, silver: 0.95 } as const;
    return Object.entries(rates).reduce((best, [tier, rate]) => (tier === "gold" ? best * rate : best), total);
  }
  bySku(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { lines } of this.#orders.values()) for (const { sku, count } of lines) counts[sku] = (counts[sku] ?? 0) + count;
    return counts;
  }
${uses.map((other) => `  async copy${other}(order: Order${other}): Promise<number> { return this.place({ ...order, id: \`\${order.id}-${file}\` }); }`).join("\n")}
}
`;
}
