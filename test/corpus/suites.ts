import { PROJECTS } from "./suite-projects";
import { runSuites } from "./suite-run";

// npm run corpus:suites [-- project ...]
//
// Projects of others that ship their own tests: every function that can be locked gets a tag, and the tests run without and with
// locks. Each test must have the same outcome.

const failed = runSuites(PROJECTS, process.argv.slice(2));
console.log(`${failed} unknown differences`);
process.exitCode = failed === 0 ? 0 : 1;
