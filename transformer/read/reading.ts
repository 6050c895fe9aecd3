import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import type { Attribute, Item } from "./tag";

/** A tag that is being read, and the problems that were found in it. */
export interface Reading {
  readonly problems: Problem[];
  /** Likely mistakes, which are woven nevertheless. */
  readonly warnings: Problem[];
  readonly ts: Parser;
  readonly file: TS.SourceFile;
}

/** Returns the value of an attribute that takes no list. */
export function single(name: string, items: Attribute["items"], { problems }: Reading): Item | undefined {
  const [first, second] = items;
  if (second === undefined) return first;
  problems.push(problem("oneValue", { start: first.start, end: items.at(-1)?.end ?? first.end }, name));
  return undefined;
}

/** Returns the range from the attribute's name to the end of its value. */
export function spanOf(attribute: Attribute | undefined): Span | undefined {
  if (attribute === undefined) return undefined;
  return { start: attribute.name.start, end: attribute.items.at(-1)?.end ?? attribute.name.end };
}

/** The source of a regular expression. */
export const IDENTIFIER = String.raw`[\p{ID_Start}$_][\p{ID_Continue}$]*`;

/** The characters that are invisible in a key. */
export const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Matches the name of a class, an interface, or a type alias, possibly in a namespace. */
export const TYPE_NAME = new RegExp(String.raw`^${IDENTIFIER}(?:\.${IDENTIFIER})*$`, "u");
