import type { Span } from "../text/span";

/** A block of code between two fences, which are lines of backticks. */
export interface CodeBlock extends Span {
  /**
   * `closed` if all blocks of the comment end, `unclear` if the fence of another block is inside this one, and `open` if a block of the
   * comment does not end. Only in a closed block is a tag certainly an example.
   */
  readonly state: "closed" | "unclear" | "open";
}

/** Matches a fence. List or quote markers may precede it, and the name of a language may follow it. */
const FENCE = /^((?:[ \t*+>-]|\d+[.)])*)(`{3,})([^`\n\r\u2028\u2029]*)$/gm;

/** Finds the blocks of code in the content of a comment, by the rules of Markdown. */
export function codeBlocksIn(content: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: (Pick<CodeBlock, "state"> & { readonly start: number; readonly length: number }) | undefined;
  for (const { index, 0: line, 1: before = "", 2: fence = "", 3: after = "" } of content.matchAll(FENCE)) {
    if (open === undefined) open = { start: index, length: fence.length, state: "closed" };
    else if (fence.length < open.length)
      continue; // A shorter fence is part of the code.
    else if (after.trim() === "" && /^[ \t>]*$/.test(before)) {
      blocks.push({ start: open.start, end: index + line.length, state: open.state });
      open = undefined;
    } else open = { ...open, state: "unclear" };
  }
  if (open === undefined) return blocks;
  const last = { start: open.start, end: content.length };
  return [...blocks, last].map(({ start, end }) => ({ start, end, state: "open" }));
}

/** Replaces blocks by spaces. */
export function withoutBlocks(content: string, blocks: readonly Span[]): string {
  let rest = content;
  for (const { start, end } of blocks)
    rest = rest.slice(0, start) + " ".repeat(end - start) + rest.slice(end);
  return rest;
}
