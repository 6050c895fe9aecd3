"use strict";

// Stands in for a tool that uses TypeScript. It creates a program in each way that typescript-eslint and other tools do, and
// returns the text and errors of the program and the emitted code.

const path = require("node:path");

module.exports = function ask(ts) {
  const config = path.resolve("tsconfig.json");
  const tagged = path.resolve("src/orders.ts");
  const untagged = path.resolve("src/wrong.ts");
  const nothing = () => undefined;
  const configHost = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: nothing };
  const { options, fileNames } = ts.getParsedCommandLineOfConfigFile(config, {}, configHost);

  const programs = {
    createProgram: () => ts.createProgram(fileNames, options, ts.createCompilerHost(options)),
    "createProgram without a host": () => ts.createProgram({ rootNames: fileNames, options }),
    createIncrementalProgram: () =>
      ts.createIncrementalProgram({ rootNames: fileNames, options }).getProgram(),
    createWatchProgram() {
      const settings = [config, undefined, ts.sys, ts.createAbstractBuilder, nothing, nothing];
      const host = ts.createWatchCompilerHost(...settings);
      host.afterProgramCreate = nothing; // By default it emits.
      const watch = ts.createWatchProgram(host);
      const program = watch.getProgram().getProgram();
      watch.close();
      return program;
    },
    LanguageService: () => languageService().getProgram(),
    ProjectService() {
      const logger = {
        close: nothing,
        endGroup: nothing,
        getLogFileName: nothing,
        hasLevel: () => false,
        info: nothing,
        loggingEnabled: () => false,
        msg: nothing,
        perftrc: nothing,
        startGroup: nothing,
      };
      const watcher = () => ({ close: nothing });
      const timers = { setTimeout, clearTimeout, setImmediate, clearImmediate };
      const service = new ts.server.ProjectService({
        host: { ...ts.sys, ...timers, watchFile: watcher, watchDirectory: watcher },
        cancellationToken: { isCancellationRequested: () => false },
        logger,
        useSingleInferredProject: false,
        useInferredProjectPerProjectRoot: false,
      });
      service.openClientFile(tagged, undefined, ts.ScriptKind.TS, process.cwd());
      const { fileName } = service.getScriptInfo(tagged);
      return service.getDefaultProjectForFile(fileName, true).getLanguageService(true).getProgram();
    },
  };

  function languageService() {
    return ts.createLanguageService({
      getCompilationSettings: () => options,
      getScriptFileNames: () => fileNames,
      getScriptVersion: () => "1",
      getScriptSnapshot(name) {
        const text = ts.sys.readFile(name);
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
      },
      getCurrentDirectory: () => process.cwd(),
      getDefaultLibFileName: ts.getDefaultLibFilePath,
      fileExists: ts.sys.fileExists,
      readFile: ts.sys.readFile,
    });
  }

  const emits = {
    "Program.emit": () => emitted(),
    "Program.emit of one file": () => emitted(tagged),
    "Program.emit of a file without a tag": () => emitted(untagged),
    "Program.emit of declarations": () => emitted(undefined, true),
    getEmitOutput: () => textOf(languageService().getEmitOutput(tagged).outputFiles),
    "getEmitOutput of declarations": () => textOf(languageService().getEmitOutput(tagged, true).outputFiles),
    transpileModule() {
      const settings = { compilerOptions: options, fileName: tagged };
      return ts.transpileModule(ts.sys.readFile(tagged), settings).outputText;
    },
  };

  function emitted(file, onlyDeclarations) {
    const program = programs.createProgram();
    const outputs = [];
    const write = (_, text) => outputs.push({ text });
    program.emit(file && program.getSourceFile(file), write, undefined, onlyDeclarations);
    return textOf(outputs);
  }

  function textOf(outputs) {
    return outputs.map(({ text }) => text).join("\n");
  }

  function seen(program) {
    const diagnostics = ts.getPreEmitDiagnostics(program);
    return {
      text: program.getSourceFile(tagged).text,
      errors: diagnostics.map(
        ({ file, start, code }) => `${path.basename(file.fileName)}:${start} TS${code}`,
      ),
    };
  }

  function attempted(emit) {
    try {
      return { code: emit() };
    } catch (error) {
      return { error: error.message };
    }
  }

  const each = (ways, report) =>
    Object.fromEntries(Object.entries(ways).map(([way, does]) => [way, report(does)]));
  return { programs: each(programs, (create) => seen(create())), emits: each(emits, attempted) };
};
