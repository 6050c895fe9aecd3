import type * as TS from "typescript";
import { problemsOf } from "./diagnostics";
import { projectOf } from "./project";

/** What tsserver loads: the editor's TypeScript, and what our tags say, in one. */
function languageService({ typescript: ts }: { readonly typescript: typeof TS }): TS.server.PluginModule {
  return {
    create(info) {
      const typescript = info.languageService;
      const project = projectOf(ts, info);
      return {
        ...typescript,
        getSemanticDiagnostics: (fileName) => [
          ...typescript.getSemanticDiagnostics(fileName),
          ...project.ask((program) => problemsOf(ts, program, fileName), []),
        ],
      };
    },
  };
}

// One function and nothing else: so tsserver finds it.
export = languageService;
