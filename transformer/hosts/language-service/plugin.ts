import type * as TS from "typescript";
import type { Span } from "../../text/span";
import { completionDetails, completionsAt } from "./completions";
import type { TagDiagnostic } from "../diagnostics/own-problems";
import { problemsOf } from "./diagnostics";
import { hoverAt } from "./hovers";
import { inlayHints } from "./inlay-hints";
import { projectOf, type OpenProject, type Project } from "./project";
import { outlivedLocks } from "./outlived-locks";
import { FIXABLE, fixesAt, isInTag } from "./quick-fixes";
import { declaredNames, referenceAt, type DeclaredName } from "./references";
import { renamedInTags } from "./renames";
import { typeErrors } from "./type-errors";
import { organizing, withoutUsed } from "./unused";

/** The plugin that tsserver loads. It adds the results for tags to those of TypeScript. */
function languageService({ typescript: ts }: { readonly typescript: typeof TS }): TS.server.PluginModule {
  return {
    create(info) {
      const theirs = info.languageService;
      const project = projectOf(ts, info);
      return {
        ...theirs,
        ...problemAnswers(ts, theirs, project),
        ...tagAnswers(ts, theirs, project),
        ...nameAnswers(ts, theirs, project),
      };
    },
  };
}

type Answers = Partial<TS.LanguageService>;

/** Returns the methods that report problems, fix them, or remove unused imports. */
function problemAnswers(ts: typeof TS, theirs: TS.LanguageService, { ask }: Project): Answers {
  const ofTypes = typeErrors(ts);
  const ownDiagnostics = (project: OpenProject, fileName: string): TagDiagnostic[] => [
    ...problemsOf(ts, project, fileName),
    ...ofTypes(project, fileName),
    ...outlivedLocks(ts, project, fileName),
  ];
  return {
    getSemanticDiagnostics(fileName) {
      const found = theirs.getSemanticDiagnostics(fileName);
      return [
        ...ask((project) => withoutUsed(ts, project, fileName, found), found),
        ...ask((project) => ownDiagnostics(project, fileName), []),
      ];
    },
    getSuggestionDiagnostics(fileName) {
      const found = theirs.getSuggestionDiagnostics(fileName);
      return ask((project) => withoutUsed(ts, project, fileName, found), found);
    },
    organizeImports(args, ...rest) {
      const mode = ask((project) => organizing(ts, project, args), args.mode);
      return theirs.organizeImports({ ...args, ...(mode && { mode }) }, ...rest);
    },
    getCodeFixesAtPosition(fileName, start, end, codes, ...rest) {
      const isOfTag = ask((project) => isInTag(ts, project, fileName, start), false);
      const mayBeOurs = isOfTag || codes.some((code) => FIXABLE.includes(code));
      const ours = (project: OpenProject): TS.CodeFixAction[] =>
        fixesAt(ts, ownDiagnostics(project, fileName), fileName, { start, end }, codes);
      return [
        ...(mayBeOurs ? ask(ours, []) : []),
        ...(isOfTag ? [] : theirs.getCodeFixesAtPosition(fileName, start, end, codes, ...rest)),
      ];
    },
    getSupportedCodeFixes: (fileName) => [...theirs.getSupportedCodeFixes(fileName), ...FIXABLE.map(String)],
  };
}

/** Returns the methods that complete the text of a tag, or show its lock. */
function tagAnswers(ts: typeof TS, theirs: TS.LanguageService, { ask }: Project): Answers {
  return {
    getCompletionsAtPosition(fileName, offset, ...rest) {
      const found = theirs.getCompletionsAtPosition(fileName, offset, ...rest);
      const ours = ask((project) => completionsAt(ts, project, fileName, offset), []);
      return withEntries(found, ours);
    },
    getCompletionEntryDetails: (fileName, offset, name, ...rest) =>
      ask((project) => completionDetails(ts, project, fileName, offset, name), undefined) ??
      theirs.getCompletionEntryDetails(fileName, offset, name, ...rest),
    provideInlayHints: (fileName, span, ...rest) => [
      ...theirs.provideInlayHints(fileName, span, ...rest),
      ...ask((project) => inlayHints(ts, project, fileName, span), []),
    ],
  };
}

function withEntries(
  theirs: TS.WithMetadata<TS.CompletionInfo> | undefined,
  ours: readonly TS.CompletionEntry[],
): TS.WithMetadata<TS.CompletionInfo> | undefined {
  if (ours.length === 0) return theirs;
  const none = { isGlobalCompletion: false, isMemberCompletion: false, isNewIdentifierLocation: false };
  return { ...none, ...theirs, entries: [...ours, ...(theirs?.entries ?? [])] };
}

/** Returns the methods that describe, find, or rename what a name in a tag refers to. */
function nameAnswers(ts: typeof TS, theirs: TS.LanguageService, project: Project): Answers {
  const { ask } = project;
  const renameLocations = (
    fileName: string,
    offset: number,
    ...rest: [inStrings: boolean, inComments: boolean, preferences: TS.UserPreferences]
  ): readonly TS.RenameLocation[] | undefined => {
    const found =
      forName(ts, project, fileName, offset, (declared) =>
        theirs.findRenameLocations(declared.fileName, declared.start, ...rest),
      ) ?? theirs.findRenameLocations(fileName, offset, ...rest);
    return found && [...found, ...ask((opened) => renamedInTags(ts, opened, found), [])];
  };
  return {
    getQuickInfoAtPosition: (fileName, offset, ...rest) =>
      ask((opened) => hoverAt(ts, opened, fileName, offset), undefined) ??
      forName(ts, project, fileName, offset, (declared, word) => {
        const about = theirs.getQuickInfoAtPosition(declared.fileName, declared.start, ...rest);
        return about && { ...about, textSpan: word };
      }) ??
      theirs.getQuickInfoAtPosition(fileName, offset, ...rest),
    getDefinitionAndBoundSpan: (fileName, offset) =>
      forName(ts, project, fileName, offset, (declared, word) => {
        const definitions = theirs.getDefinitionAtPosition(declared.fileName, declared.start);
        return definitions && { definitions, textSpan: word };
      }) ?? theirs.getDefinitionAndBoundSpan(fileName, offset),
    getDefinitionAtPosition: (fileName, offset, ...rest) =>
      forName(ts, project, fileName, offset, (declared) =>
        theirs.getDefinitionAtPosition(declared.fileName, declared.start),
      ) ?? theirs.getDefinitionAtPosition(fileName, offset, ...rest),
    getRenameInfo: (fileName: string, offset: number, preferences: TS.UserPreferences) =>
      forName(ts, project, fileName, offset, (declared, word) => ({
        ...theirs.getRenameInfo(declared.fileName, declared.start, preferences),
        triggerSpan: word,
      })) ?? theirs.getRenameInfo(fileName, offset, preferences),
    findRenameLocations: renameLocations as TS.LanguageService["findRenameLocations"],
  };
}

/** Answers a question about a name in a tag with TypeScript's answer about its declaration. Returns `undefined` for any other text. */
function forName<Answer>(
  ts: typeof TS,
  { ask }: Project,
  fileName: string,
  offset: number,
  answer: (declared: DeclaredName, word: TS.TextSpan) => Answer | undefined,
): Answer | undefined {
  const found = ask(({ program }) => {
    const reference = referenceAt(ts, program, fileName, offset);
    const [declared] = reference === undefined ? [] : declaredNames(ts, reference);
    return reference && declared && { reference, declared };
  }, undefined);
  return found && answer(found.declared, textSpan(found.reference));
}

function textSpan({ start, end }: Span): TS.TextSpan {
  return { start, length: end - start };
}

// tsserver requires the module to be a single function.
export = languageService;
