/** Returns a fix for a type error in a tag, because the compiler only reports the types. Returns `undefined` for any other error. */
export function typeCure(code: string, message: string): string | undefined {
  if (code === "TS2322") return cureOfSkip(message);
  if (code !== "TS2345" || !message.includes("parameter of type 'KeyValue")) return undefined;
  return /^Argument of type '[^']*\[\]'/.test(message) ? `${OF_A_LIST} ${OF_A_KEY}` : OF_A_KEY;
}

/** Returns the fix for a skip that returns `undefined`. The woven code of a tag returns `undefined` in no other case. */
function cureOfSkip(message: string): string | undefined {
  const [, type] = /^Type 'undefined' is not assignable to type '([^]*)'\.$/.exec(message) ?? [];
  return type === undefined
    ? undefined
    : `Where somebody else holds the lock, \`onFailure=skip\` returns \`undefined\`: let the function return \`Promise<${type} | undefined>\`, or leave out \`onFailure\`, and it throws a LockWaitTimeoutError.`;
}

const OF_A_LIST =
  'A list is a key for each of its elements: add `each=true`; of objects, name what identifies each: `keyName="lines.map((line) => line.sku)"`.';

const OF_A_KEY =
  'A key is a text, a number, a bigint or a boolean. Of an object, name the field that identifies it: `keyName=order.id`, or `keyType=CLASS fieldName=id`. For what may be missing, say what stands in its place: `keyName="id ?? 0"`.';
