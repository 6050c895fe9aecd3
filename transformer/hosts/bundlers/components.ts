import { TAG_NAME } from "../../read/spelling";
import { problem } from "../../text/problems";
import { findingIn, type Finding } from "../one-file/weaver";

/** Matches files that contain code among other content. The plugins that extract this code drop its comments. */
export const COMPONENTS = /\.(?:vue|svelte|astro)$/;

const TAG_IN_COMMENT = new RegExp(String.raw`^[ \t]*(?:/\*\*|\*)[ \t]*(@${TAG_NAME})\b`, "gm");

/** Reports each tag in a component, because it would be lost. */
export function tagsInComponent(text: string): Finding[] {
  if (!text.includes(`@${TAG_NAME}`)) return [];
  return [...text.matchAll(TAG_IN_COMMENT)].map(({ index, 0: found }) => {
    const end = index + found.length;
    return findingIn(text, problem("tagInComponent", { start: end - TAG_NAME.length - 1, end }));
  });
}
