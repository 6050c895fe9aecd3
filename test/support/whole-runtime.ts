// All names that the package exports at run time.
export * from "../../runtime";
export * from "../../runtime/woven/entry";
