import type * as TS from "typescript";
import { readDefaults, type Defaults } from "../../read/options";

/** A project that is open in the editor, as it is now. */
export interface OpenProject {
  readonly program: TS.Program;
  /** Of the plugin's entry, for all tags that do not say otherwise. */
  readonly defaults: Defaults;
  /** The editor may want something else before an answer is there. */
  readonly cancellation: TS.CancellationToken;
}

export interface Project {
  /** An answer of ours; or the other one, where there is none: our failure must not take TypeScript's answers away. */
  ask<Answer>(answer: (project: OpenProject) => Answer, otherwise: Answer): Answer;
}

export function projectOf(ts: typeof TS, info: TS.server.PluginCreateInfo): Project {
  return {
    ask(answer, otherwise) {
      const program = info.languageService.getProgram();
      if (program === undefined) return otherwise;
      try {
        const defaults = defaultsOf(info.config, program);
        return answer({ program, defaults, cancellation: cancellationOf(ts, info) });
      } catch (error) {
        if (error instanceof ts.OperationCanceledException) throw error;
        info.project.projectService.logger.info(`lockweave: ${String((error as Error).stack)}`);
        return otherwise;
      }
    },
  };
}

function cancellationOf(ts: typeof TS, info: TS.server.PluginCreateInfo): TS.CancellationToken {
  const token = info.languageServiceHost.getCancellationToken?.();
  const isCancellationRequested = (): boolean => token?.isCancellationRequested() ?? false;
  return {
    isCancellationRequested,
    throwIfCancellationRequested() {
      if (isCancellationRequested()) throw new ts.OperationCanceledException();
    },
  };
}

/** An entry among the `plugins`. */
interface Entry {
  readonly transform?: string;
  readonly defaults?: unknown;
}

const TRANSFORMER: ReadonlySet<string | undefined> = new Set(["lockweave/transformer", "lockweave"]);

/** Of our own entry, or of that which weaves. What is wrong with them is the compiler's to tell. */
function defaultsOf(own: Entry, program: TS.Program): Defaults {
  const { plugins } = program.getCompilerOptions();
  const entries = (Array.isArray(plugins) ? plugins : []) as readonly Entry[];
  const weaving = entries.find(({ transform }) => TRANSFORMER.has(transform));
  return readDefaults(own.defaults ?? weaving?.defaults ?? {}).defaults;
}
