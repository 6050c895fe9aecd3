/** One value of the Redis protocol, version 2 or 3, in a stream. */
export interface RespValue {
  /** Where the next value begins. */
  readonly end: number;
  /** Its scalars, including those of nested values. For a command, these are its name and its arguments. */
  readonly words: readonly string[];
}

/** Returns the value that begins at `start`, or `undefined` if it is incomplete. */
export function readResp(bytes: Buffer, start: number): RespValue | undefined {
  const lineEnd = bytes.indexOf("\r\n", start);
  if (lineEnd < 0) return undefined;
  const type = bytes.toString("latin1", start, start + 1);
  const line = bytes.toString("utf8", start + 1, lineEnd);
  const end = lineEnd + 2;
  if ("$!=".includes(type)) return readBulk(bytes, end, Number(line));
  if ("*~>".includes(type)) return readMany(bytes, end, Number(line));
  if (type === "%") return readMany(bytes, end, 2 * Number(line));
  return { end, words: [line] };
}

function readBulk(bytes: Buffer, start: number, length: number): RespValue | undefined {
  if (length < 0) return { end: start, words: [] };
  const end = start + length + 2;
  return end > bytes.length ? undefined : { end, words: [bytes.toString("utf8", start, end - 2)] };
}

function readMany(bytes: Buffer, start: number, count: number): RespValue | undefined {
  const words: string[] = [];
  let end = start;
  for (let index = 0; index < count; index += 1) {
    const value = readResp(bytes, end);
    if (value === undefined) return undefined;
    words.push(...value.words);
    end = value.end;
  }
  return { end, words };
}

/** Splits a stream into its values. */
export class RespStream {
  #rest: Buffer = Buffer.alloc(0);

  /** Returns the values that `data` completes, each with its bytes. */
  *cut(data: Buffer): Iterable<{ readonly bytes: Buffer; readonly words: readonly string[] }> {
    const bytes = Buffer.concat([this.#rest, data]);
    let start = 0;
    for (
      let value = readResp(bytes, start);
      value !== undefined;
      start = value.end, value = readResp(bytes, start)
    ) {
      yield { bytes: bytes.subarray(start, value.end), words: value.words };
    }
    this.#rest = bytes.subarray(start);
  }
}
