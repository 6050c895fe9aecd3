#!/usr/bin/env node
import { packageVersion } from "../hosts/ts-patch/woven-files";
import { shortPath } from "../verify/outputs";
import type { Project } from "../verify/project";
import { UsageError } from "../terminal/usage-error";
import { HELP, parseCommand, type Command } from "./arguments";
import { build } from "./build";
import { check } from "./check";
import { diff } from "./eject/diff";
import { eject } from "./eject/eject";
import { init } from "./init/init";
import { inspectLock, releaseLock } from "../console/one-lock";
import { tail } from "../console/tail";
import { top } from "../console/top";
import { ui } from "../console/ui/ui";
import { assertRunByYarn } from "./package-manager";
import { block, print, printError, printJson, safe, type SafeText } from "../terminal/printer";
import { configFile, openProjects } from "./project";
import { aboutSources, problemLine } from "./rows";
import { table } from "../terminal/table";
import { tagsOf, type TagRow } from "./tags";
import { watchTags } from "./watch-tags";

/** The commands that read the packages of the project. */
const READS_PROJECT: ReadonlySet<Command["name"]> = new Set([
  "init",
  "list",
  "check",
  "build",
  "diff",
  "eject",
]);

void main(process.argv.slice(2), process.cwd()).then((code) => {
  process.exitCode = code;
});

async function main(args: readonly string[], cwd: string): Promise<number> {
  try {
    const command = parseCommand(args);
    if (READS_PROJECT.has(command.name)) assertRunByYarn(cwd, args);
    return await run(command, cwd);
  } catch (error) {
    if (error instanceof UsageError) {
      printError(safe`lockweave: ${error.message}`, safe`See \`lockweave --help\`.`);
    } else {
      printError(safe`Internal error in lockweave:`, block(stackOf(error)));
    }
    return 2;
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function run(command: Command, cwd: string): number | Promise<number> {
  switch (command.name) {
    case "help":
      print(block(HELP.trimEnd()));
      return 0;
    case "version":
      print(safe`${packageVersion()}`);
      return 0;
    case "init":
      return init(cwd, command.isAgreed);
    case "list":
      return list(openProjects(command.project, cwd, command), command.json, cwd);
    case "top":
      return top(command.urls, command, command.json);
    case "tail":
      return tail(command.urls, command, command.json);
    case "ui":
      return ui(command.urls, command, command.port);
    case "inspect":
      return inspectLock(command.urls, command.key, command, command.json);
    case "release":
      return releaseLock(command.urls, command.key, command, command);
    case "diff":
      return diff(openProjects(command.project, cwd, { ...command, prefersApi: true }), command.wanted, cwd);
    case "eject":
      return eject(
        openProjects(command.project, cwd, { ...command, prefersApi: true }),
        command.isAgreed,
        cwd,
      );
    case "build":
      return build(configFile(command.project, cwd), cwd, command);
    default:
      if (command.watch) watchTags(command.project, cwd, command.typescript);
      return command.watch ? 0 : check(command, cwd);
  }
}

// ---- list -----------------------------------------------------------------------------------------------

function list(projects: readonly Project[], json: boolean, cwd: string): number {
  const { tags, problems } = tagsOf(projects);
  printError(...aboutSources(projects));
  if (json) {
    const withPath = <R extends { readonly file?: string }>(row: R): R =>
      row.file === undefined ? row : { ...row, file: shortPath(row.file, cwd) };
    printJson({ tags: tags.map(withPath), problems: problems.map(withPath) }, 2);
  } else {
    print(...(tags.length === 0 ? [safe`There are no tags.`] : tagTable(tags, cwd)));
    printError(...problems.map((row) => problemLine(row, cwd)));
  }
  return problems.length === 0 ? 0 : 1;
}

function tagTable(tags: readonly TagRow[], cwd: string): SafeText[] {
  return table(
    ["tag", "function", "key", "options"],
    tags.map((tag) => [
      `${shortPath(tag.file, cwd)}:${tag.line}`,
      tag.function,
      tag.key,
      Object.entries(tag.options)
        .map(([name, value]) => `${name}=${String(value)}`)
        .join(" "),
    ]),
  );
}
