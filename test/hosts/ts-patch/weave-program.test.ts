import test from "ava";
import ts from "typescript";
import type { Compiler } from "../../../transformer/hosts/ts-patch/compiler";
import { wovenProgram, type PluginConfig } from "../../../transformer/hosts/ts-patch/weave-program";

// The program transformer alone, with files in memory.

const OPTIONS: ts.CompilerOptions = { noLib: true, types: [], module: ts.ModuleKind.ESNext, noEmit: true };

function programOf(text: string): { program: ts.Program; host: ts.CompilerHost } {
  const host = ts.createCompilerHost(OPTIONS);
  host.getSourceFile = (name, settings) =>
    name === "/app/a.ts" ? ts.createSourceFile(name, text, settings) : undefined;
  return { program: ts.createProgram(["/app/a.ts"], OPTIONS, host), host };
}

const ENTRY = { transform: "lockweave/transformer", transformProgram: true };

function weave(text: string, config: PluginConfig = ENTRY): { program: ts.Program; woven: ts.Program } {
  const { program, host } = programOf(text);
  return { program, woven: wovenProgram(program, host, config, { ts: ts as Compiler }).woven };
}

test("a project without tags is not compiled again", (t) => {
  const { program, woven } = weave("export const a = 1;");
  t.is(woven, program);
  const tagged = weave("/** @redisLock businessFlag=pay */\nexport async function pay() {}");
  t.not(tagged.woven, tagged.program);
});

/** Returns the errors in the plugin's entry. */
function errorsIn(config: object): string[] {
  return weave("", config)
    .woven.getOptionsDiagnostics()
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"))
    .filter((message) => message.startsWith("LW"));
}

test("an option that the entry inherits is an error and has no effect", (t) => {
  const inheriting = Object.assign(Object.create({ defaults: { lockTime: "no time" } }) as object, ENTRY);
  t.regex(errorsIn(inheriting).join("\n"), /^LW1401: [^\n]*The option `defaults` is inherited[^\n]*$/);
});

test("the entry may have the options of ts-patch, but no unknown options", (t) => {
  const ofTsPatch = {
    import: "default",
    name: "lockweave",
    isEsm: false,
    tsConfig: "tsconfig.json",
    resolvePathAliases: true,
    type: "program",
  };
  t.deepEqual(errorsIn({ ...ENTRY, ...ofTsPatch }), []);
  t.regex(
    errorsIn({ ...ENTRY, ...ofTsPatch, default: {} }).join("\n"),
    /no option `default`\. Did you mean `defaults`\?$/,
  );
});
