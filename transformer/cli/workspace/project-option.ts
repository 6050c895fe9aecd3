/**
 * Returns the paths that a command passes to `tsc`, such as those in `-p build.json` and `-b --force a.json b.json`. With `-b`, it
 * also returns the other words after it.
 *
 * @param command may be JSON text, in which `\"` stands for a quote
 */
export function projectPathsIn(command: string): string[] {
  return Array.from(command.matchAll(PROJECT_OPTION), ([, option = "", rest = ""]) => {
    const words = rest.split(/[\s=\\"']+/).filter((word) => word !== "" && !word.startsWith("-"));
    return /^--?b/.test(option) ? words : words.slice(0, 1);
  }).flat();
}

/** Matches the option and the words after it, up to the end of the command. */
const PROJECT_OPTION = /\s(-p|--project|-b|--build)(?=[\s=])((?:[\s='\w./@-]|\\")+)/g;
