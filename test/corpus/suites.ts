import { PROJECTS } from "./suite-projects";
import { runSuites } from "./suite-run";

// npm run proof -- corpus-suites [project ...]
//
// Runs the tests of third-party projects without locks, and with a tag on every function that can be locked. Each test must
// have the same outcome.

const failed = runSuites(PROJECTS, process.argv.slice(2));
console.log(`${failed} unknown differences`);
process.exitCode = failed === 0 ? 0 : 1;
