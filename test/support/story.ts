/** Returns the lines of an example's log, without the times, IDs, and durations that differ between runs. */
export function story(output: string): string[] {
  return output
    .split("\n")
    .map((line) =>
      line
        .replace(/^ *[\d.]+ s {2}/, "")
        .replaceAll(/\b[0-9a-f]{8,32}\b/g, "ID")
        .replaceAll(/\d+ ms/g, "N ms"),
    )
    .filter((line) => line !== "");
}
