// Required in each process that runs a test file. AVA waits for such a process to end by itself, and where some test has
// a time-out longer than AVA's own, it may wait for ever. So a process ends here in any case, and tells what kept it.

const MOST_MINUTES = 60;
const SECONDS_AFTER_TESTS = 30;

module.exports = async function endInTime() {
  const { registerCompletionHandler } = await import("ava");
  end(MOST_MINUTES * 60, `The tests of this file take longer than ${MOST_MINUTES} minutes`);
  registerCompletionHandler(() =>
    end(SECONDS_AFTER_TESTS, "The tests of this file are over, and something keeps its process from ending"),
  );
};

function end(seconds, reason) {
  const timer = setTimeout(() => {
    process.stderr.write(`${reason}: ${process.getActiveResourcesInfo().join(", ")}\n`);
    process.exit(1);
  }, seconds * 1_000);
  timer.unref();
}
