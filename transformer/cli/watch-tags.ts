import { join } from "node:path";
import { asCompilerProblem, numberOf } from "../hosts/diagnostics/own-problems";
import { printed } from "../hosts/native/compiler-output";
import { UsageError } from "../terminal/usage-error";
import { analysisRows } from "./rows/analysis";
import { block, print, safe } from "../terminal/printer";
import { openProjects } from "./project";
import { dependencyProblems, problemsOf, typeProblems, type ProblemRow } from "./rows/tags";
import { watchSources, type Run } from "./watch";

/** Reports problems of the tags after each change. It reads no output, because the build may not have finished. */
export function watchTags(config: string | undefined, cwd: string, typescript: string | undefined): void {
  let sources: readonly string[] = [config ?? join(cwd, "tsconfig.json")];
  watchSources((): Run => {
    try {
      const projects = openProjects(config, cwd, { typescript });
      sources = projects.flatMap((project) => project.sources);
      const { certain, likely } = analysisRows(projects);
      const found = [
        ...problemsOf(projects),
        ...dependencyProblems(projects, false),
        ...typeProblems(projects),
        ...certain,
      ];
      print(...found.map((row) => block(formatted(row, "error", cwd))));
      print(...likely.map((row) => block(formatted(row, "warning", cwd))));
      return { errors: found.length, sources };
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      print(safe`error TS${numberOf("LW1401")}: ${error.message}`);
      return { errors: 1, sources };
    }
  });
}

/** Formats a problem like the compiler, so that editors recognize it. */
function formatted(
  { file, line = 1, column = 1, code, message }: ProblemRow,
  category: "error" | "warning",
  cwd: string,
): string {
  const asTheirs = code.startsWith("LW") ? asCompilerProblem({ code, message }) : { code, message };
  return printed({ file, line, column, category, ...asTheirs }, cwd);
}
