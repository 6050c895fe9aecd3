// Finds tests that rely on lucky timing. Each TCP socket of the process sends and receives its data late, by random times, and in order. So
// replies of several servers and commands on several connections arrive in orders that an idle machine hardly ever shows. Also stops the
// process at random. Loaded with `NODE_OPTIONS="--require $PWD/test/support/jitter.cjs"`, it affects child processes, too. Tests that block their
// process until a command has arrived, or that count loaded modules, cannot pass with it.
const { Socket } = require("node:net");

const LONGEST_DELAY_MS = Number(process.env.JITTER_MS ?? 30);
const LONGEST_STOP_MS = Number(process.env.STOP_MS ?? 50);
const STOPPED_EVERY_MS = 200;

// Some tests replace these.
const after = setTimeout;
const { random } = Math;

/** Most delays are short, so that some replies overtake others. */
const lateMs = (longestMs) => random() ** 3 * longestMs;

/** Returns a function that runs steps one after the other, each late. Its result says that there is room for more data. */
function late() {
  let last = Promise.resolve();
  return (step) => {
    last = last.then(() => new Promise((resolve) => after(resolve, lateMs(LONGEST_DELAY_MS)))).then(step);
    return true;
  };
}

/** The queues of each socket. Pipes between processes have none. */
const queues = new WeakMap();
function queuesOf(socket) {
  if (!queues.has(socket) && socket.remoteFamily === undefined) return undefined;
  if (!queues.has(socket)) queues.set(socket, { received: late(), sent: late() });
  return queues.get(socket);
}

/** Where Node sends all data of a socket. It has no public name. */
const WRITE = "_writeGeneric";

const { push, [WRITE]: write } = Socket.prototype;
Socket.prototype.push = function (...words) {
  const receive = () => !this.destroyed && push.apply(this, words);
  return queuesOf(this)?.received(receive) ?? receive();
};
Socket.prototype[WRITE] = function (...words) {
  const send = () => {
    if (this.destroyed) words.at(-1)(new Error("The socket was closed before it sent this"));
    else write.apply(this, words);
  };
  const queue = queuesOf(this)?.sent;
  if (queue === undefined) send();
  else queue(send);
};

const nobody = new Int32Array(new SharedArrayBuffer(4));
function stopLater() {
  after(
    () => {
      Atomics.wait(nobody, 0, 0, lateMs(LONGEST_STOP_MS));
      stopLater();
    },
    random() * 2 * STOPPED_EVERY_MS,
  ).unref();
}
if (LONGEST_STOP_MS > 0) stopLater();
