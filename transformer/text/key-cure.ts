/**
 * What to do about a value that cannot be a part of a key, of which the compiler says no more than its types:
 * `undefined` of all else that it says.
 */
export function keyCure(code: string, message: string): string | undefined {
  if (code !== "TS2345" || !message.includes("parameter of type 'KeyValue")) return undefined;
  return /^Argument of type '[^']*\[\]'/.test(message) ? `${OF_A_LIST} ${CURE}` : CURE;
}

const OF_A_LIST =
  'A list is a key for each of its elements: add `each=true`; of objects, name what identifies each: `keyName="lines.map((line) => line.sku)"`.';

const CURE =
  'A key is a text, a number, a bigint or a boolean. Of an object, name the field that identifies it: `keyName=order.id`, or `keyType=CLASS fieldName=id`. For what may be missing, say what stands in its place: `keyName="id ?? 0"`.';
