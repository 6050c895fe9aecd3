export type Style = "bold" | "red" | "cyan";

type Paint = (text: string) => string;

const plain: Paint = (text) => text;
const painted =
  (begin: number, end: number): Paint =>
  (text) =>
    text === "" ? "" : `\u001B[${begin}m${text}\u001B[${end}m`;

/** Returns colors if the stream is a terminal. `NO_COLOR` and `FORCE_COLOR` override that, as in other tools. */
export function palette(
  stream: { readonly isTTY?: boolean },
  { NO_COLOR: never, FORCE_COLOR: always, TERM: terminal }: Readonly<Record<string, string | undefined>>,
): Readonly<Record<Style, Paint>> {
  const isForced = always !== undefined && always !== "0" && always !== "false";
  const isRefused = always === "0" || always === "false" || (never !== undefined && never !== "");
  const isSeen = isForced || (!isRefused && stream.isTTY === true && terminal !== "dumb");
  return isSeen
    ? { bold: painted(1, 22), red: painted(31, 39), cyan: painted(36, 39) }
    : { bold: plain, red: plain, cyan: plain };
}
