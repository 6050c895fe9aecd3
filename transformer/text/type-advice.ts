/** Returns a fix for a type error in a tag, because the compiler only reports the types. Returns `undefined` for any other error. */
export function typeAdvice(code: string, message: string): string | undefined {
  if (code === "TS2322") return cureOfSkip(message);
  if (code !== "TS2345" || !message.includes("parameter of type 'KeyValue")) return undefined;
  return /^Argument of type '[^']*\[\]'/.test(message) ? `${OF_A_LIST} ${OF_A_KEY}` : OF_A_KEY;
}

/** Returns the fix for a skip that returns `undefined`. The woven code of a tag returns `undefined` in no other case. */
function cureOfSkip(message: string): string | undefined {
  const [, type] = /^Type 'undefined' is not assignable to type '([^]*)'\.$/.exec(message) ?? [];
  return type === undefined
    ? undefined
    : `If the lock is busy, \`onFailure=skip\` returns \`undefined\`. Fix: declare the return type \`Promise<${type} | undefined>\`, or remove \`onFailure\`, so that a busy lock throws a LockWaitTimeoutError.`;
}

const OF_A_LIST =
  'With `each=true`, each element of a list is a key. If the elements are objects, write the part that identifies each: `keyName="lines.map((line) => line.sku)"`.';

const OF_A_KEY =
  'A key is a string, a number, a bigint, or a boolean. For an object, name the field that identifies it: `keyName=order.id`, or `keyType=CLASS fieldName=id`. If the value may be missing, write a replacement: `keyName="id ?? 0"`.';
