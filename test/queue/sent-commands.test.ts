import test from "ava";
import { SentCommands, type Sent } from "../../runtime/queue/sent-commands";

/** Returns a command that got no reply. */
function unanswered(number: number): Sent {
  const requestId = String(number).padStart(32, "0");
  const request = { key: "LOCK_a", requestId, lockTimeMs: 30_000, fencing: false };
  return { request, sentAt: number, isInFlight: false };
}

test("a command that was found to hold the key is remembered, however many others get no reply", (t) => {
  for (let found = 0; found < 32; found += 1) {
    const sent = new SentCommands();
    const commands = Array.from({ length: 200 }, (_, number) => unanswered(number));
    for (const [number, command] of commands.entries()) {
      sent.add(command);
      if (number === found) sent.noteFound(command);
    }
    t.true(sent.has(commands[found] ?? t.fail()));
    t.true(sent.unresolved.length <= 32);
  }
});
