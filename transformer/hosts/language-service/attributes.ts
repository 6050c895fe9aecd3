import { ABOUT_ATTRIBUTES } from "../../../runtime/attributes/documentation";
import { literalOf, type Defaults } from "../../read/attributes";

/** Returns the documentation of an attribute in Markdown, for hovers and suggestions. */
export function aboutAttribute(name: string, defaults: Defaults): string {
  const about = Object.hasOwn(ABOUT_ATTRIBUTES, name) ? ABOUT_ATTRIBUTES[name] : undefined;
  if (about === undefined) return "";
  const { byDefault, meaning, details } = about;
  const ofProject = literalOf(defaults.get(name));
  const value = ofProject === undefined ? byDefault : `\`${String(JSON.parse(ofProject))}\` in this project`;
  const sentence = value === "required" ? "Required." : value === "" ? "" : `Default: ${value}.`;
  return [details === undefined ? `${meaning}.` : `${meaning}. ${details}`, sentence]
    .filter((text) => text !== "")
    .join("\n\n");
}
