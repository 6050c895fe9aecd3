/** Returns a fix for a type error in a tag, because the compiler only reports the types. Returns `undefined` for any other error. */
export function typeAdvice(code: string, message: string): string | undefined {
  if (code === "TS2322") return TO_DURATION.test(message) ? OF_A_TIME : fixOfSkip(message);
  if (code !== "TS2345" || !message.includes("parameter of type 'KeyValue")) return undefined;
  return /^Argument of type '[^']*\[\]'/.test(message) ? `${OF_A_LIST} ${OF_A_KEY}` : OF_A_KEY;
}

/** Returns the fix for a skip that returns `undefined`. The woven code of a tag returns `undefined` in no other case. */
function fixOfSkip(message: string): string | undefined {
  const [, type] = /^Type 'undefined' is not assignable to type '([^]*)'\.$/.exec(message) ?? [];
  return type === undefined
    ? undefined
    : `If the body is skipped, the function returns \`undefined\`. Fix: declare the return type \`Promise<${type} | undefined>\`, or remove \`onFailure=skip\` and \`onUnreachable=skip\`, so that the call throws.`;
}

/** Matches the type `Duration`, which the compiler may write out. */
const TO_DURATION = /is not assignable to type '(?:[^']*\bDuration\b|[^']*`\$\{number\}ms`)/;

const OF_A_TIME =
  'A time is text with its unit, such as "20s". Fix: give the value the type `Duration` of lockweave, or write the unit in the tag: `lockTime="${seconds}s"`.';

const OF_A_LIST =
  'With `each=true`, each element of a list is a key. Fix: if the elements are objects, write the part that identifies each: `keyName="lines.map((line) => line.sku)"`.';

const OF_A_KEY =
  'A key is a string, a number, a bigint, or a boolean. Fix: for an object, name the field that identifies it: `keyName=order.id`, or `keyType=CLASS fieldName=id`. If the value may be missing, write a replacement: `keyName="id ?? 0"`.';
