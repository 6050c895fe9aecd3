/** The version of this package. The build replaces this module with the bare number. */
export const VERSION = (require("../../package.json") as { readonly version: string }).version;
