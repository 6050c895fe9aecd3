import type * as TS from "typescript";
import { readTransactions, type Starter } from "../../analyze/transaction-libraries";
import { readDefaults, type Defaults } from "../../read/attributes";

/** A snapshot of a project that is open in the editor. */
export interface OpenProject {
  readonly program: TS.Program;
  /** The defaults in the plugin's entry, for tags that do not set these options. */
  readonly defaults: Defaults;
  /** What starts transactions in this project, as the plugin's entry names it. */
  readonly starters: readonly Starter[];
  /** Whether the editor shows the lock of each function. The plugin's entry can turn this off. */
  readonly hasInlayHints: boolean;
  /** Signals that the editor no longer needs the result. */
  readonly cancellation: TS.CancellationToken;
}

export interface Project {
  /** Returns our answer, or `otherwise` if it fails. A failure of ours must not hide TypeScript's answers. */
  ask<Answer>(answer: (project: OpenProject) => Answer, otherwise: Answer): Answer;
}

export function projectOf(ts: typeof TS, info: TS.server.PluginCreateInfo): Project {
  return {
    ask(answer, otherwise) {
      const program = info.languageService.getProgram();
      if (program === undefined) return otherwise;
      try {
        const options = optionsOf(info.config, program);
        return answer({ program, ...options, cancellation: cancellationOf(ts, info) });
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

/** An entry in `plugins` of tsconfig.json. */
interface Entry {
  readonly transform?: string;
  readonly defaults?: unknown;
  readonly transactions?: unknown;
  readonly inlayHints?: unknown;
}

const TRANSFORMER: ReadonlySet<string | undefined> = new Set(["lockweave/transformer", "lockweave"]);

/** Returns the options of our own entry, or of the entry of the transformer. The compiler reports errors in them. */
function optionsOf(
  own: Entry,
  program: TS.Program,
): Pick<OpenProject, "defaults" | "starters" | "hasInlayHints"> {
  const { plugins } = program.getCompilerOptions();
  const entries = (Array.isArray(plugins) ? plugins : []) as readonly Entry[];
  const weaving = entries.find(({ transform }) => TRANSFORMER.has(transform));
  return {
    defaults: readDefaults(own.defaults ?? weaving?.defaults ?? {}).defaults,
    starters: readTransactions(own.transactions ?? weaving?.transactions).starters,
    hasInlayHints: (own.inlayHints ?? weaving?.inlayHints) !== false,
  };
}
