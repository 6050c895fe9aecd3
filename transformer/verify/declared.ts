import { existsSync, readFileSync } from "node:fs";
import type * as TS from "typescript";
import { declaredTags, type DeclaredTag } from "../read/declared-tags";
import { mayHaveTags } from "../read/spelling";
import { locksIn } from "./locks";

/** Tags of a declaration file whose JavaScript does not hold their locks. */
export interface Unlocked {
  readonly javaScript: string;
  readonly tags: readonly DeclaredTag[];
}

/** Its own build was woven and has told of an error: what could not be woven there refuses to run. */
const HAS_REFUSAL = /: LW\d{4}: .*refuses to run unlocked\./;

/**
 * Holds the tags of a declaration file against the JavaScript beside it: a build that ignored the weave left the
 * comments and no locks. Nothing is known of declarations without JavaScript, nor of tags that do not show in
 * declarations: those of private members, or where comments were taken out.
 *
 * @param elsewhere where the JavaScript is, if not beside it
 */
export function unlockedIn(
  ts: typeof TS,
  declarations: TS.SourceFile,
  elsewhere: (declarations: string) => string | undefined = () => undefined,
): Unlocked | undefined {
  const { fileName, text } = declarations;
  if (!mayHaveTags(text)) return undefined;
  const declared = declaredTags(ts, declarations);
  if (declared.length === 0) return undefined;
  const beside = javaScriptBeside(fileName);
  const javaScript = existsSync(beside) ? beside : elsewhere(fileName);
  if (javaScript === undefined || !existsSync(javaScript)) return undefined;
  const code = readFileSync(javaScript, "utf8");
  if (HAS_REFUSAL.test(code)) return undefined;
  const { locks } = locksIn(ts, javaScript, code);
  const tags = declared.filter(
    ({ flag, name }) =>
      !locks.some(
        ({ site, options }) => options.get("businessFlag") === flag && (name === undefined || site === name),
      ),
  );
  return tags.length === 0 ? undefined : { javaScript, tags };
}

function javaScriptBeside(declarations: string): string {
  return declarations.replace(/\.d\.([cm]?)ts$/, ".$1js");
}
