import { script, type Script } from "../scripts/script";
import { replyError } from "./errors";

// GLIDE rejects a command whose reply contains an error, even if that error is one of many items. One key with other data than text would
// then fail a whole batch. So each script runs inside another one, which replaces each error in an array by an array that begins with two
// empty arrays. No script of ours returns such an array itself.

const BEFORE = "local function run()\n";
const AFTER = `
end
local function marked(reply)
  if type(reply) ~= 'table' then return reply end
  if reply.err then return {{}, {}, reply.err} end
  for index, item in ipairs(reply) do reply[index] = marked(item) end
  return reply
end
local reply = run()
if type(reply) == 'table' and reply.err then return reply end
return marked(reply)
`;

const marking = new WeakMap<Script, Script>();

/** Returns a script that runs the given one, and marks the errors in its reply. */
export function markingErrors(plain: Script): Script {
  let wrapped = marking.get(plain);
  if (wrapped === undefined) marking.set(plain, (wrapped = script(BEFORE, plain.source, AFTER)));
  return wrapped;
}

/** Returns a reply with text in place of bytes, and errors in place of their marks. */
export function readReply(reply: unknown): unknown {
  if (reply instanceof Uint8Array) return Buffer.from(reply).toString();
  if (!Array.isArray(reply)) return reply;
  const [first, second, text] = reply as readonly unknown[];
  if (isEmpty(first) && isEmpty(second)) return replyError(String(text));
  return reply.map(readReply);
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
