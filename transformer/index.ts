import { weaveProgram } from "./hosts/ts-patch/weave-program";

// One function and nothing else: so every way to load a plugin finds it.
export = weaveProgram;
