import { joined, padded, safe, type SafeText, type Value } from "./printer";

/** Returns the lines of a table, the header first. Each column is as wide as its widest cell. */
export function table(header: readonly string[], rows: readonly (readonly Value[])[]): SafeText[] {
  const lines = [header, ...rows].map((line) => line.map((cell) => safe`${cell}`));
  const widths = lines.reduce<number[]>(
    (widest, line) => line.map((cell, index) => Math.max(widest[index] ?? 0, cell.length)),
    [],
  );
  return lines.map((line) =>
    joined(
      line.map((cell, index) => padded(cell, widths[index] ?? 0)),
      "  ",
    ),
  );
}
