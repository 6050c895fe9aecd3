import { weaveProgram } from "./hosts/ts-patch/weave-program";

// The function is the only export, so that every way to load a plugin finds it.
export = weaveProgram;
