import { wordsOf, type Command } from "../command";
import { AS_BYTES, type GlideBatch, type GlideCluster, type GlideRoute } from "./client";
import { portError } from "./errors";
import { readReply } from "./scripts";

/** `RequestType.CustomCommand` of GLIDE. */
const CUSTOM_COMMAND = 1;

/**
 * Sends commands to one node of a cluster in one write. Resolves to a reply or an error for each. GLIDE follows redirections, but repeats no
 * command of a batch for another reason. It repeats a command that is sent alone for seconds, for example while its slot migrates.
 */
export async function execBatch(
  glide: GlideCluster,
  commands: readonly Command[],
  route: GlideRoute,
): Promise<readonly unknown[]> {
  const replies = await glide.exec(batchOf(commands), false, { ...AS_BYTES, route });
  if (!Array.isArray(replies) || replies.length !== commands.length)
    throw new Error("GLIDE returned another number of replies than it got commands");
  return replies.map(readBatchReply);
}

/** The adapter has no access to GLIDE's class of batches, because nothing here imports the package. So it builds the same object. */
function batchOf(commands: readonly Command[]): GlideBatch {
  return {
    commands: commands.map((command) => ({
      requestType: CUSTOM_COMMAND,
      argsArray: { args: wordsOf(command).map((word) => Buffer.from(String(word))) },
    })),
    isAtomic: false,
    setCommandsIndexes: [],
  };
}

/** Replies of a batch contain errors as such, also in arrays. */
function readBatchReply(reply: unknown): unknown {
  if (reply instanceof Error) return portError(reply);
  return Array.isArray(reply) ? reply.map(readBatchReply) : readReply(reply);
}
