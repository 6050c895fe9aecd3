/**
 * What to do about a value that cannot be a part of a key, of which the compiler says no more than its types:
 * `undefined` of all else that it says.
 */
export function keyCure(code: string, message: string): string | undefined {
  return code === "TS2345" && message.includes("parameter of type 'KeyValue") ? CURE : undefined;
}

const CURE =
  'A key is a text, a number, a bigint or a boolean. Of an object, name the field that identifies it: `keyName=order.id`, or `keyType=CLASS fieldName=id`. For what may be missing, say what stands in its place: `keyName="id ?? 0"`.';
