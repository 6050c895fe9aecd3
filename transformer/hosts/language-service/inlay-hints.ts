import type * as TS from "typescript";
import { LOCK_ATTRIBUTES } from "../../../runtime/attributes/table";
import type { NeedPlan } from "../../read/need";
import type { Plan } from "../../read/plan";
import { shownKey } from "../../read/shown-key";
import { siteOptions } from "../../read/site-options";
import { mayConfigure } from "../../read/spelling";
import { weaveOpen } from "./diagnostics";
import type { OpenProject } from "./project";

/**
 * Returns the lock of each function as a hint before its body: `🔒 LOCK_payOrder_{orderNo}, 30 s`. A lock that its callers hold is shown as
 * `🔒 needs LOCK_payOrder_{orderNo}`.
 */
export function inlayHints(
  ts: typeof TS,
  project: OpenProject,
  fileName: string,
  { start, length }: TS.TextSpan,
): TS.InlayHint[] {
  const file = project.program.getSourceFile(fileName);
  if (file === undefined || !project.hasInlayHints) return [];
  const { sites = [], needs = [] } = weaveOpen(ts, project, fileName) ?? {};
  const hints = [
    ...needs.map((need) => [need, hintOfNeed(need)] as const),
    ...sites.map(({ plan }) => [plan, hintOf(plan, project.program)] as const),
  ];
  return hints.flatMap(([{ fn }, text]): TS.InlayHint[] => {
    const position = fn.body.getStart(file);
    if (position < start || position > start + length) return [];
    return [
      {
        text,
        position,
        kind: ts.InlayHintKind.Enum, // A value. The other kinds are types and names of parameters.
        whitespaceBefore: !/\s/.test(file.text.charAt(position - 1)),
        whitespaceAfter: true,
      },
    ];
  });
}

function hintOfNeed(need: NeedPlan): string {
  return `🔒 needs ${shownKey(need)}${need.isReadEnough ? ", mode=read" : ""}`;
}

function hintOf(plan: Plan, program: TS.Program): string {
  const parts = [`🔒 ${shownKey(plan)}`, lockTimeOf(plan, program), plan.sharing?.words];
  return parts.filter((part) => part !== undefined).join(", ");
}

/** Returns the lock time, such as `30 s`. `undefined` if the sources may set another default at startup. */
function lockTimeOf(plan: Plan, program: TS.Program): string | undefined {
  const expression = plan.expressions.find(({ name }) => name === "lockTime");
  if (expression !== undefined) return expression.shown.replaceAll("${", "{");
  const { lockTime } = siteOptions(plan);
  if (typeof lockTime === "string") return lockTime.replace(/[a-z]+$/, (unit) => ` ${UNITS[unit] ?? unit}`);
  return program.getSourceFiles().some(maySetDefault) ? undefined : DEFAULT_LOCK_TIME;
}

/** The units that a tag abbreviates more than a text does. */
const UNITS: Readonly<Record<string, string>> = { m: "min" };

const DEFAULT_LOCK_TIME = `${LOCK_ATTRIBUTES.lockTime.default / 1_000} s`;

/** The results for the files that are open or read. TypeScript replaces a file when it changes. */
const known = new WeakMap<TS.SourceFile, boolean>();

/** Whether the file may call `configure({ defaults: { lockTime } })`. */
function maySetDefault(file: TS.SourceFile): boolean {
  const found = known.get(file);
  if (found !== undefined) return found;
  const may =
    !file.isDeclarationFile && mayConfigure(file.text) && /\bdefaults\b[^]*\blockTime\b/.test(file.text);
  known.set(file, may);
  return may;
}
