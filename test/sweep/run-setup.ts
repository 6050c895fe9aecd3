import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { hasLink, manifestsOf, sourcesOf, tsconfigText, type Files } from "./files";
import { HOOK_FILES } from "./hosts/at-run";
import { HOSTS } from "./hosts/hosts";
import { BuildError, type Place, type Session } from "./hosts/session";
import { bypassingRequest } from "./hosts/webpack";
import { expectationOf } from "./expectation";
import { faultIn, outcomeOf, type Outcome } from "./judge";
import { controlOf } from "./control";
import { limitOf } from "./limits";
import { builtShop } from "./packages";
import { run } from "./processes";
import { rootFor } from "./roots";
import type { Stage } from "./program";
import { isWebpackLike, type Setup } from "./setup";
import { PLUGIN_FILES } from "./tsconfig-plugins";

/** The result of a setup. */
export interface Result {
  readonly outcome: Outcome["kind"];
  readonly at: "build" | "run";
  readonly fault?: string;
  readonly limit?: string;
}

/** The stage of the sources in the first of two builds, and whether it has the plugin. */
const BEFORE: Readonly<
  Record<Exclude<Setup["cache"], "cold">, { readonly stage: Stage; readonly isWoven: boolean }>
> = {
  unchanged: { stage: "tagged", isWoven: true },
  "tag-added": { stage: "untagged", isWoven: true },
  "tag-removed": { stage: "tagged", isWoven: true },
  "key-changed": { stage: "other key", isWoven: true },
  "plugin-added": { stage: "tagged", isWoven: false },
  "plugin-dropped": { stage: "tagged", isWoven: true },
};

async function write(dir: string, files: Files): Promise<void> {
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await writeFile(join(dir, file), text);
  }
}

/** Writes the files of a stage. */
async function writeStage(
  root: string,
  { dir, setup, isDefective }: Place,
  stage: Stage,
  isWoven: boolean,
): Promise<void> {
  const isBypassing = isWebpackLike(setup) && setup.order.startsWith("loads");
  const isBuilt = setup.layout === "linked-woven" || setup.layout === "linked-unwoven";
  await write(dir, {
    ...sourcesOf(setup, stage, {
      isControl: isDefective,
      request: isBypassing ? await bypassingRequest(setup) : "",
    }),
    ...(isBuilt && (await builtShop(await rootFor(root, { ...setup, host: "tspc" }), setup, stage))),
    "tsconfig.json": tsconfigText(setup, isWoven),
  });
}

async function makePlace(root: string, setup: Setup, defect: Defect | undefined): Promise<Place> {
  const dir = await mkdtemp(join(await rootFor(root, setup), "setup-"));
  await write(dir, { ...manifestsOf(setup), ...HOOK_FILES, ...PLUGIN_FILES });
  if (hasLink(setup)) {
    await mkdir(join(dir, "node_modules"));
    await symlink(join(dir, "packages/shop"), join(dir, "node_modules/shop"));
  }
  return { dir, setup, isDefective: defect !== undefined };
}

async function start(session: Session, dir: string, isWoven: boolean): Promise<Outcome> {
  const { code, output } = await run({
    dir,
    args: session.command(isWoven),
    ...(session.node !== undefined && { node: session.node }),
    ...(session.env !== undefined && { env: session.env }),
  });
  return outcomeOf(code, output);
}

/** Builds once or twice. The first build may fail, since it may lack the plugin or have a wrong tag. */
async function buildAndStart(root: string, place: Place, session: Session): Promise<Outcome> {
  const { setup, dir } = place;
  if (setup.cache !== "cold") {
    const before = BEFORE[setup.cache];
    const isWoven =
      before.isWoven &&
      !place.isDefective &&
      (setup.order !== "forgotten" || setup.cache === "plugin-dropped");
    await writeStage(root, place, before.stage, isWoven);
    await session.build(isWoven).catch(ignoreBuildError);
    await start(session, dir, isWoven);
  }
  const isWoven = setup.order !== "forgotten" && !place.isDefective;
  await writeStage(root, place, setup.cache === "tag-removed" ? "untagged" : "tagged", isWoven);
  try {
    await session.build(isWoven);
  } catch (error) {
    if (error instanceof BuildError) return { kind: "refused", at: "build", output: error.message };
    throw error;
  }
  return await start(session, dir, isWoven);
}

function ignoreBuildError(error: unknown): void {
  if (!(error instanceof BuildError)) throw error;
}

/** A planted defect that the judge must find: there is no plugin, and nothing checks for one. */
export type Defect = "weaves nothing";

/** Builds and runs a setup, and judges the outcome. */
export async function runSetup(root: string, setup: Setup, defect?: Defect): Promise<Result> {
  const place = await makePlace(root, setup, defect);
  const session = await HOSTS[setup.host](place);
  try {
    const outcome = await buildAndStart(root, place, session);
    const fault = faultIn(outcome, expectationOf(setup), controlOf(setup));
    const limit = fault === undefined ? undefined : limitOf(setup, fault);
    const at = outcome.kind === "refused" ? outcome.at : "run";
    return {
      outcome: outcome.kind,
      at,
      ...(limit === undefined ? fault !== undefined && { fault: fault.text } : { limit }),
    };
  } finally {
    await session.close?.();
    await rm(place.dir, { recursive: true, force: true });
  }
}
