#!/usr/bin/env node
import { packageVersion } from "../hosts/ts-patch/woven-files";
import { UsageError } from "../terminal/usage-error";
import { parseCommand, type Command } from "./arguments";
import { build } from "./build";
import { check } from "./check";
import { diff } from "./eject/diff";
import { eject } from "./eject/eject";
import { helpOf } from "./help";
import { init } from "./init/init";
import { list } from "./list";
import { inspectLock, releaseLock } from "../console/one-lock";
import { tail } from "../console/tail";
import { top } from "../console/top";
import { ui } from "../console/ui/ui";
import { assertRunByYarn, commandLine } from "./workspace/package-manager";
import { block, print, printError, safe } from "../terminal/printer";
import { postgres } from "./postgres";
import { configFile, openProjects } from "./project";
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
  let command: Command | undefined;
  try {
    command = parseCommand(args);
    if (READS_PROJECT.has(command.name)) assertRunByYarn(cwd, args);
    return await run(command, cwd);
  } catch (error) {
    if (error instanceof UsageError) {
      printError(safe`lockweave: ${error.message}`);
      // The help describes the options. It does not help with a server that does not reply.
      if (command === undefined) printError(safe`See \`${commandLine(cwd, "lockweave", "--help")}\`.`);
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
      print(block(helpOf(command.of).trimEnd()));
      return 0;
    case "version":
      print(safe`${packageVersion()}`);
      return 0;
    case "init":
      return init(cwd, command.isAgreed, command.store);
    case "list":
      return list(openProjects(command.project, cwd, command), command, cwd);
    case "top":
      return top(command.target, command.json);
    case "tail":
      return tail(command.target, command.json);
    case "ui":
      return ui(command.target, command.port);
    case "inspect":
      return inspectLock(command.target, command.key, command.json);
    case "release":
      return releaseLock(command.target, command.key, command);
    case "postgres":
      return postgres(command.url, command.schema);
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
