import type * as TS from "typescript";
import { NEED_NAME } from "../../read/spelling";
import type { Span } from "../../text/span";
import { aboutAttribute } from "./attributes";
import type { OpenProject } from "./project";
import { editableTagsIn, type EditableTag } from "./tag-at";

/** Returns the documentation of the tag or attribute at the offset. */
export function hoverAt(
  ts: typeof TS,
  { program, defaults }: OpenProject,
  fileName: string,
  offset: number,
): TS.QuickInfo | undefined {
  const file = program.getSourceFile(fileName);
  if (file === undefined) return undefined;
  for (const found of editableTagsIn({ ts, file })) {
    const { tag } = found;
    if (isAt(tag.word, offset)) {
      return info(ts, tag.word, `(lock) ${keyOf(found)}`, aboutTag(found));
    }
    const attribute = tag.attributes.find(({ name }) => isAt(name, offset));
    if (attribute !== undefined) {
      const { name } = attribute;
      return info(ts, name, `(attribute) ${name.text}`, aboutAttribute(name.text, defaults));
    }
  }
  return undefined;
}

/** Returns the key of the lock, as `lockweave list` shows it. */
function keyOf({ tag }: EditableTag): string {
  const valuesOf = (name: string): string[] =>
    tag.attributes.find((attribute) => attribute.name.text === name)?.items.map(({ text }) => text) ?? [];
  const [whole] = valuesOf("key");
  if (whole !== undefined) return whole.replaceAll("${", "{");
  const [flag = "..."] = valuesOf("businessFlag");
  const names = valuesOf("keyName");
  const fields = valuesOf("fieldName");
  const parts = fields.length === 0 ? names : fields.map((field) => `${names[0] ?? ""}.${field}`);
  const [isOfEach] = valuesOf("each");
  if (isOfEach === "true") return parts.map((part) => `LOCK_${flag}_{${part}}`).join(" ");
  return `LOCK_${flag}${parts.length === 0 ? "" : `_${parts.map((part) => `{${part}}`).join(",")}`}`;
}

function aboutTag({ name, tag }: EditableTag): string {
  if (name === undefined) return "";
  return tag.name === NEED_NAME
    ? `\`${name}\` throws a \`LockNotHeldError\` unless its caller holds this lock.`
    : `\`${name}\` runs only while it holds this lock.`;
}

function info(ts: typeof TS, { start, end }: Span, title: string, documentation: string): TS.QuickInfo {
  return {
    kind: ts.ScriptElementKind.memberVariableElement,
    kindModifiers: "",
    textSpan: { start, length: end - start },
    displayParts: [{ kind: "text", text: title }],
    documentation: [{ kind: "text", text: documentation }],
  };
}

function isAt({ start, end }: Span, offset: number): boolean {
  return start <= offset && offset <= end;
}
