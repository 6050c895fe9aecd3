import type { Project } from "./project";

/** A client library that a project declares. */
export interface DeclaredClient<Name extends string> {
  readonly name: Name;
  /** The place in which the application creates a client, if it was found. */
  readonly creation: Creation | undefined;
}

interface Creation {
  readonly file: string;
  readonly line: number;
}

/** Returns the first place that creates a client, in a file that names the package. */
export function creationOf(project: Project, packageName: string, call: RegExp): Creation | undefined {
  for (const file of project.codeFiles()) {
    const text = project.read(file) ?? "";
    if (!text.includes(`"${packageName}"`) && !text.includes(`'${packageName}'`)) continue;
    const at = text.search(call);
    if (at !== -1) return { file, line: text.slice(0, at).split("\n").length };
  }
  return undefined;
}

export function placeIn({ file, line }: Creation): string {
  return `${file}:${line}`;
}

/** Returns the version of a package: the installed one, or the range in package.json. */
export function versionOf(project: Project, packageName: string): string {
  const { dependencies = {}, devDependencies = {} } = project.manifest;
  return (
    project.manifestOf(packageName)?.manifest.version ??
    dependencies[packageName] ??
    devDependencies[packageName] ??
    ""
  );
}
