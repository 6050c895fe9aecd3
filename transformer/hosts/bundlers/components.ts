import { mayHaveTags } from "../../read/spelling";
import type { Span } from "../../text/span";
import { parseTags } from "../../read/tag";
import { problem } from "../../text/problems";
import { findingIn, type Finding } from "../one-file/weaver";

/** Matches files that contain code among other content. The plugins that extract this code drop its comments. */
export const COMPONENTS = /\.(?:vue|svelte|astro)$/;

/** Text that may be a comment of the code, wherever its line begins. */
const COMMENT_START = /\/\*|(?<=^[ \t]*)\/\//gm;

/** Reports each tag in a component, and each misspelled one, because it would be lost. */
export function tagsInComponent(text: string): Finding[] {
  if (!mayHaveTags(text)) return [];
  const found = new Map<number, Span>();
  for (const { index: start, 0: mark } of text.matchAll(COMMENT_START)) {
    const { tags, problems } = parseTags(text, { start, end: endOf(text, start, mark) });
    for (const span of tags.length > 0 ? tags.map(({ word }) => word) : problems) found.set(span.start, span);
  }
  return [...found.values()].map(({ start, end }) =>
    findingIn(text, problem("tagInComponent", { start, end })),
  );
}

function endOf(text: string, start: number, mark: string): number {
  const end = mark === "/*" ? "*/" : "\n";
  const at = text.indexOf(end, start + mark.length);
  return at === -1 ? text.length : at + end.length;
}
