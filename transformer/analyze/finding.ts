import type * as TS from "typescript";
import type { Problem } from "../text/problems";
import type { Span } from "../text/span";
import type { Step } from "./reach";
import { bare, nameOf } from "./syntax";
import type { TaggedLock } from "./tagged-locks";

/** A place in the program's sources. */
export interface Spot extends Span {
  readonly file: TS.SourceFile;
}

/** A finding of a rule. */
export interface Finding {
  readonly file: TS.SourceFile;
  readonly problem: Problem;
  /** Whether this is certainly a mistake, and not only likely to be one. */
  readonly isCertain: boolean;
  /** The calls and tags that prove it, in the order of the message. A comment at any of them allows it. */
  readonly proof: readonly Spot[];
}

export function spotOf(node: TS.Node): Spot {
  const file = node.getSourceFile();
  return { file, start: node.getStart(file), end: node.end };
}

/** Returns the place of the callee's name. */
export function spotOfCall(ts: typeof TS, { call: { expression } }: Pick<Step, "call">): Spot {
  const called = bare(ts, expression);
  return spotOf(ts.isPropertyAccessExpression(called) ? called.name : called);
}

export function tagOf({ file, at }: TaggedLock): Spot {
  return { file, ...at };
}

/** Returns the text of a path: `OrderService.pay` calls `retry`, which calls `Stock.reserve`. */
export function pathText(ts: typeof TS, from: TaggedLock, path: readonly Step[]): string {
  return `\`${from.name}\` ${stepsText(ts, path)}`;
}

/** Returns the text of a path without its start: calls `retry`, which calls `Stock.reserve`. */
export function stepsText(ts: typeof TS, path: readonly Step[]): string {
  const steps = path.map((step, index) => {
    const { to, isCallback } = step;
    const verb = isCallback ? "hands over" : "calls";
    const called = nameOf(ts, to);
    const name = called === undefined ? "a function" : `\`${called}\``;
    return `${index === 0 ? "" : "which "}${verb} ${name} (${placeText(spotOfCall(ts, step))})`;
  });
  return steps.join(", ");
}

export function placeText({ file, start }: Spot): string {
  const { line } = file.getLineAndCharacterOfPosition(start);
  return `${file.fileName.split("/").at(-1) ?? ""}:${line + 1}`;
}
