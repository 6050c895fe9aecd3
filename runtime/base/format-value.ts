import { inspect } from "node:util";

/** The limits for one value, so that a quoted value does not make a message unreadable. */
const MAX_CHARACTERS = 200;
const MAX_NAMES = 10;

/**
 * Formats any value for a message. Strings, numbers, and the like appear as they are, without the credentials of URLs. An object appears
 * as its kind and the names of its fields, because the values may be secret.
 *
 * It never throws. A value that throws when it is inspected must not replace the message.
 */
export function formatValue(value: unknown): string {
  try {
    return typeof value === "object" && value !== null ? outline(value, true) : formatNonObject(value);
  } catch {
    return `${typeof value === "object" ? "an object" : `a ${typeof value}`} that throws when it is formatted`;
  }
}

/**
 * Returns the text without the credentials of the URLs in it: `redis://app:pw@host` becomes `redis://***@host`, even if the password has
 * an `@`, and `?password=pw` becomes `?password=***`.
 */
export function redacted(text: string): string {
  if (!text.includes("@") && !text.includes("=")) return text;
  return text.replaceAll(/\S+/g, (word) =>
    withoutUser(word).replaceAll(PARAMETER, (all, name: string, given: string) =>
      SECRET.test(name) ? `${name}***${CLOSING.exec(given.slice(-3))?.[0] ?? ""}` : all,
    ),
  );
}

const PARAMETER = /([?&][^=&?]*=)([^&]*)/g;
const SECRET = /pass|pwd|secret|token|auth|credential/i;
/** Punctuation that may follow a URL in a sentence. */
const CLOSING = /['"`)\]},;]*$/;

function withoutUser(url: string): string {
  const scheme = url.indexOf("://");
  const at = url.lastIndexOf("@");
  return scheme === -1 || at < scheme ? url : `${url.slice(0, scheme)}://***${url.slice(at)}`;
}

function formatNonObject(value: unknown): string {
  if (typeof value === "string") return inspect(redactedWhole(value), { maxStringLength: MAX_CHARACTERS });
  // The result of `inspect` would also show the function's own fields.
  if (typeof value === "function")
    return /^\[.*?\]/.exec(inspect(value, { customInspect: false }))?.[0] ?? "[Function]";
  return inspect(value);
}

/** Redacts a text that may be nothing but a URL. Then spaces are part of the password, and the scheme may be missing. */
function redactedWhole(text: string): string {
  const scheme = /^[a-z][a-z\d+.-]*:\/\//i.exec(text)?.[0] ?? "";
  const at = text.lastIndexOf("@");
  const isCredentials = scheme === "" ? text.slice(0, Math.max(at, 0)).includes(":") : at > 0;
  return redacted(isCredentials ? `${scheme}***${text.slice(at)}` : text);
}

/** @param inside whether to outline the objects in an array as well */
function outline(object: object, inside: boolean): string {
  if (Array.isArray(object)) return outlineOfArray(object, inside);
  const tag = Object.prototype.toString.call(object).slice("[object ".length, -1);
  if (tag !== "Object")
    return object instanceof Map || object instanceof Set ? `${tag}(${object.size})` : tag;
  const names = Object.keys(object).map((name) => (/^[\w$]+$/.test(name) ? name : inspect(name)));
  const fields = names.length === 0 ? "{}" : `{ ${firstOf(names, names.length).join(", ")} }`;
  const maker: unknown = Object.getPrototypeOf(object)?.constructor;
  const kind = typeof maker === "function" ? maker.name : "";
  return kind === "Object" || kind === "" ? fields : `${kind} ${fields}`;
}

function outlineOfArray(array: readonly unknown[], inside: boolean): string {
  if (array.length === 0) return "[]";
  if (!inside) return `Array(${array.length})`;
  const elements = array
    .slice(0, MAX_NAMES)
    .map((element) =>
      typeof element === "object" && element !== null ? outline(element, false) : formatNonObject(element),
    );
  return `[ ${firstOf(elements, array.length).join(", ")} ]`;
}

function firstOf(texts: readonly string[], count: number): readonly string[] {
  return count <= MAX_NAMES ? texts : [...texts.slice(0, MAX_NAMES), `and ${count - MAX_NAMES} more`];
}
