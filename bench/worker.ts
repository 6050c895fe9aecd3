/** A process with clients of Redis. A crew starts it and sends it jobs. */
import { enter, isContestant } from "./contestants";
import { serveJobs } from "./serve";

const [, , name] = process.argv;
if (!isContestant(name)) throw new Error(`There is no contestant \`${name}\``);
serveJobs((port, lockTimeMs) => enter(name, port, lockTimeMs));
