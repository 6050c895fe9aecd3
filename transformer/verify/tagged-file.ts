import type * as TS from "typescript";
import { NEED_NAME, TAG_NAME, type TagName } from "../read/spelling";
import type { LockableFunction } from "../read/syntax";
import type { Span } from "../text/span";
import type { Woven } from "../weave/weave";
import type { TaggedFile, TaggedFunction } from "./project";

/** Returns the file with its tags, or nothing if it has neither tags nor problems. */
export function taggedFile(source: TS.SourceFile, woven: Woven | undefined): TaggedFile[] {
  if (woven === undefined) return [];
  const { sites, needs, tags, diagnostics: problems, warnings } = woven;
  if (tags.length + problems.length + warnings.length === 0) return [];
  const functions = [
    ...sites.map(({ name, start, end, plan: { fn } }) => functionOf(TAG_NAME, name, { start, end }, fn)),
    ...needs.map(({ site, at, fn }) => functionOf(NEED_NAME, site, at, fn)),
  ];
  return [{ source, sites, needs, functions, tags, problems, warnings }];
}

function functionOf(
  tag: TagName,
  name: string,
  { start, end }: Span,
  { body }: LockableFunction,
): TaggedFunction {
  return { tag, name, bodyAt: body.pos, start, end };
}
