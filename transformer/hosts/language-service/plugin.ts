import type * as TS from "typescript";
import type { Span } from "../../text/span";
import { completionDetails, completionsAt } from "./completions";
import type { TagDiagnostic } from "../diagnostics/own-problems";
import { problemsOf } from "./diagnostics";
import { hoverAt } from "./hovers";
import { inlayHints } from "./inlay-hints";
import { projectOf, type OpenProject } from "./project";
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
      return { ...theirs, ...answers(ts, theirs, projectOf(ts, info)) };
    },
  };
}

function answers(
  ts: typeof TS,
  theirs: TS.LanguageService,
  { ask }: ReturnType<typeof projectOf>,
): Partial<TS.LanguageService> {
  /** Answers a question about a name in a tag with TypeScript's answer about its declaration. */
  const forName = <Answer>(
    fileName: string,
    offset: number,
    answer: (declared: DeclaredName, word: TS.TextSpan) => Answer | undefined,
  ): Answer | undefined => {
    const found = ask(({ program }) => {
      const reference = referenceAt(ts, program, fileName, offset);
      const [declared] = reference === undefined ? [] : declaredNames(ts, reference);
      return reference && declared && { reference, declared };
    }, undefined);
    return found && answer(found.declared, textSpan(found.reference));
  };
  const ofTypes = typeErrors(ts);
  const ownDiagnostics = (project: OpenProject, fileName: string): TagDiagnostic[] => [
    ...problemsOf(ts, project, fileName),
    ...ofTypes(project, fileName),
    ...outlivedLocks(ts, project, fileName),
  ];
  const renameLocations = (
    fileName: string,
    offset: number,
    ...rest: [inStrings: boolean, inComments: boolean, preferences: TS.UserPreferences]
  ): readonly TS.RenameLocation[] | undefined => {
    const found =
      forName(fileName, offset, (declared) =>
        theirs.findRenameLocations(declared.fileName, declared.start, ...rest),
      ) ?? theirs.findRenameLocations(fileName, offset, ...rest);
    return found && [...found, ...ask((project) => renamedInTags(ts, project, found), [])];
  };
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
    getCompletionsAtPosition(fileName, offset, ...rest) {
      const found = theirs.getCompletionsAtPosition(fileName, offset, ...rest);
      const ours = ask((project) => completionsAt(ts, project, fileName, offset), []);
      return withEntries(found, ours);
    },
    getCompletionEntryDetails: (fileName, offset, name, ...rest) =>
      ask((project) => completionDetails(ts, project, fileName, offset, name), undefined) ??
      theirs.getCompletionEntryDetails(fileName, offset, name, ...rest),
    getQuickInfoAtPosition: (fileName, offset, ...rest) =>
      ask((project) => hoverAt(ts, project, fileName, offset), undefined) ??
      forName(fileName, offset, (declared, word) => {
        const about = theirs.getQuickInfoAtPosition(declared.fileName, declared.start, ...rest);
        return about && { ...about, textSpan: word };
      }) ??
      theirs.getQuickInfoAtPosition(fileName, offset, ...rest),
    provideInlayHints: (fileName, span, ...rest) => [
      ...theirs.provideInlayHints(fileName, span, ...rest),
      ...ask((project) => inlayHints(ts, project, fileName, span), []),
    ],
    getDefinitionAndBoundSpan: (fileName, offset) =>
      forName(fileName, offset, (declared, word) => {
        const definitions = theirs.getDefinitionAtPosition(declared.fileName, declared.start);
        return definitions && { definitions, textSpan: word };
      }) ?? theirs.getDefinitionAndBoundSpan(fileName, offset),
    getDefinitionAtPosition: (fileName, offset, ...rest) =>
      forName(fileName, offset, (declared) =>
        theirs.getDefinitionAtPosition(declared.fileName, declared.start),
      ) ?? theirs.getDefinitionAtPosition(fileName, offset, ...rest),
    getRenameInfo: (fileName: string, offset: number, preferences: TS.UserPreferences) =>
      forName(fileName, offset, (declared, word) => ({
        ...theirs.getRenameInfo(declared.fileName, declared.start, preferences),
        triggerSpan: word,
      })) ?? theirs.getRenameInfo(fileName, offset, preferences),
    findRenameLocations: renameLocations as TS.LanguageService["findRenameLocations"],
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

function withEntries(
  theirs: TS.WithMetadata<TS.CompletionInfo> | undefined,
  ours: readonly TS.CompletionEntry[],
): TS.WithMetadata<TS.CompletionInfo> | undefined {
  if (ours.length === 0) return theirs;
  const none = { isGlobalCompletion: false, isMemberCompletion: false, isNewIdentifierLocation: false };
  return { ...none, ...theirs, entries: [...ours, ...(theirs?.entries ?? [])] };
}

function textSpan({ start, end }: Span): TS.TextSpan {
  return { start, length: end - start };
}

// tsserver requires the module to be a single function.
export = languageService;
