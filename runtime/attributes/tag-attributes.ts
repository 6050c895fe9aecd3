import { LOCK_ATTRIBUTES, type OptionRow } from "./table";

// Only the transformer reads this file. Its additions to the table would be dead code in the runtime.

/** Every attribute of the tag, in the order in which messages list them. */
export const ATTRIBUTES = {
  businessFlag: { kind: "text" },
  keyName: { kind: "values" },
  keyType: { kind: "choice", values: ["VALUE", "CLASS", "JSON"], default: "VALUE" },
  keyClass: { kind: "type" },
  fieldName: { kind: "fields" },
  key: { kind: "template" },
  when: { kind: "expression" },
  signal: { kind: "path" },
  skipValue: { kind: "expression" },
  ...LOCK_ATTRIBUTES,
  each: { kind: "switch", default: false, preset: "nowhere" },
} as const;

export type AttributeName = keyof typeof ATTRIBUTES;

export function isAttribute(name: string): name is AttributeName {
  return Object.hasOwn(ATTRIBUTES, name);
}

/** The names of all attributes. */
export const ATTRIBUTE_NAMES = Object.keys(ATTRIBUTES) as readonly AttributeName[];

/** The attributes that become options in the woven code. */
export const OPTIONS = {
  ...LOCK_ATTRIBUTES,
  each: ATTRIBUTES.each,
} satisfies Readonly<Record<string, OptionRow>>;
