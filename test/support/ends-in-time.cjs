// Loaded in each process that runs a test file. AVA waits until such a process exits by itself. If a test has a longer
// timeout than AVA, it may wait forever. So this exits the process in any case, and reports what kept it alive.

const MOST_MINUTES = 30;
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
