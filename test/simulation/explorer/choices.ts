import type { Choice } from "./story";

/** Formats choices as they are printed and passed to `--replay`: `12:3,27:1`. */
export function written(choices: readonly Choice[]): string {
  return choices.map(({ step, option }) => `${step}:${option}`).join(",");
}

/** @throws if the text is not a list of choices */
export function parsed(text: string): Choice[] {
  return text
    .split(",")
    .filter((one) => one !== "")
    .map((one) => {
      const [, step, option] = /^(\d+):(\d+)$/.exec(one) ?? [];
      if (step === undefined || option === undefined) throw new Error(`Expected 12:3,27:1, got ${text}`);
      return { step: Number(step), option: Number(option) };
    });
}
