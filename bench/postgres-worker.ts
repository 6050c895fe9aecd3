/** A process with clients of PostgreSQL. A crew starts it and sends it jobs. */
import { enter, isPostgresContestant } from "./postgres-contestants";
import { serveJobs } from "./serve";

const [, , name] = process.argv;
if (!isPostgresContestant(name)) throw new Error(`There is no contestant \`${name}\``);
serveJobs((port, lockTimeMs) => enter(name, port, lockTimeMs));
