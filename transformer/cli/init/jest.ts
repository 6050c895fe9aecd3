import type { ConfigText } from "./config-text";
import { NOT_UNDERSTOOD, type Draft } from "./draft";
import type { Host } from "./host";
import { endToEndConfigs } from "./nest-builders";
import { jestConfigs } from "./nx-projects";
import type { Project } from "./project";
import { commandFor } from "./scripts";

export const JEST: Host = {
  name: "Jest",
  isForTests: true,
  evidence: (project) =>
    project.config("jest.config") ?? (project.dependsOn("jest") ? "`jest` in package.json" : undefined),
  setUp(draft, project) {
    const ofNx = jestConfigs(project);
    const others = new Set([...project.configsNamedTo("jest"), ...endToEndConfigs(project), ...ofNx]);
    for (const other of others) setUpFile(draft, project, other);
    if (ofNx.length > 0) return;
    const json = project.files.find((file) => file === "jest.config.json");
    const file = project.config("jest.config") ?? json ?? "package.json";
    setUpFile(draft, project, file);
  },
  next: (project, draft) => ({
    command: commandFor(project, draft, "jest"),
    about: "runs the tests with their locks; no file is written",
  }),
};

function setUpFile(draft: Draft, project: Project, file: string): void {
  const isInPackage = file === "package.json";
  const isDone = draft.edit(file, (config) => {
    if (draft.text(file)?.includes("lockweave/jest") === true) return true;
    const root = config.root();
    if (root === undefined) return false;
    if (isInPackage && config.value(root, "jest") === undefined) {
      config.addProperties(root, {
        jest: `{\n    "transform": ${usualTransform(undefined, project)}\n  }`,
      });
      return true;
    }
    const settings = isInPackage ? config.objectAt(root, "jest") : root;
    return settings !== undefined && wrapTransforms(config, settings, project);
  });
  if (isDone) return;
  const lines = ['transform: { "\\\\.[cm]?[jt]sx?$": ["lockweave/jest", { transformer: "ts-jest" }] }'];
  draft.byHand.push({ file, why: NOT_UNDERSTOOD, lines });
}

type Settings = NonNullable<ReturnType<ConfigText["root"]>>;

function wrapTransforms(config: ConfigText, settings: Settings, project: Project): boolean {
  const transforms = config.objectAt(settings, "transform");
  if (transforms === undefined) {
    const preset = config.value(settings, "preset");
    const isReadable =
      preset === undefined || /^["']ts-jest(?:\/presets\/default)?["']$/.test(config.textOf(preset));
    if (!isReadable || config.value(settings, "transform") !== undefined || !config.isWhole(settings))
      return false;
    const transform = usualTransform(preset === undefined ? undefined : "ts-jest", project);
    config.addProperties(settings, { transform });
    return true;
  }
  if (transforms.properties.length === 0) return false;
  for (const property of transforms.properties) {
    if ("expression" in property) {
      // A spread of a preset, as `ts-jest config:init` writes it. Only the preset knows which transformer compiles which files.
      const wrapped = `([files, transformer]) => [files, ["lockweave/jest", { transformer }]]`;
      const entries = `Object.entries(${config.textOf(property.expression)})`;
      config.replace(property, `...Object.fromEntries(${entries}.map(${wrapped}))`);
      continue;
    }
    const name = property.name !== undefined && "text" in property.name ? property.name.text : "";
    const value = config.value(transforms, name);
    const code = value && config.textOf(value);
    // Other patterns match no scripts.
    if (value === undefined || code === undefined || !/[jt]s|\bt\b|\[(?:jt|tj)\]/.test(name)) continue;
    if (!/^(?:["']|\[\s*["'])/.test(code)) return false;
    config.replace(value, `["lockweave/jest", { "transformer": ${code} }]`);
  }
  return true;
}

/**
 * Returns the value of `transform` for a configuration without one.
 *
 * @param transformer the preset's transformer, if there is a preset
 */
function usualTransform(transformer: string | undefined, project: Project): string {
  const name = transformer ?? (project.dependsOn("ts-jest") ? "ts-jest" : undefined);
  return name === undefined
    ? '{ "\\\\.[cm]?[jt]sx?$": "lockweave/jest" }' // This wraps babel-jest, Jest's default.
    : `{ "\\\\.[cm]?tsx?$": ["lockweave/jest", { "transformer": "${name}" }] }`;
}
