/** The version of the schema that this version of the store needs. It also works with later ones. */
export const SCHEMA_VERSION = 1;

/** Returns the version that a schema has. */
export const VERSION_QUERY = "SELECT a.version FROM lockweave.about a";
