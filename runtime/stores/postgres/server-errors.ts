import { errorMessage } from "../../base/errors";
import { StatementError } from "./client-port";

/** Codes with which the server refuses to open a connection. The statement was not sent then. */
const REFUSED = /^28|^(?:3D000|53300|57P03)$/;
/** Codes with which the server ends a connection. The outcome of the statement is then unknown. */
const ENDED = /^08|^57P0[1245]$|^25P0[34]$/;

interface ServerError extends Error {
  readonly code: string;
  readonly severity: string;
}

/** Whether the error is the server's reply. Errors of sockets have a code, too, but no severity. */
function isServerError(error: unknown): error is ServerError {
  const { code, severity } = (error ?? {}) as Partial<ServerError>;
  return error instanceof Error && typeof code === "string" && typeof severity === "string";
}

/** Some libraries give the severity in the language of the server, so the codes decide, too. */
function endsConnection({ code, severity }: ServerError): boolean {
  return REFUSED.test(code) || ENDED.test(code) || severity === "FATAL" || severity === "PANIC";
}

/** Whether the connection is still usable after the error. */
export function keepsConnection(error: unknown): boolean {
  return error instanceof StatementError || (isServerError(error) && !endsConnection(error));
}

/** Returns the error for the store. It contains no values of the statement. */
export function translateError(error: unknown): Error {
  if (error instanceof StatementError) return error; // The adapter did not send it.
  if (!isServerError(error)) {
    return new Error(`the connection to PostgreSQL failed: ${messageOf(error)}`);
  }
  const { code, message } = error;
  if (REFUSED.test(code) || !endsConnection(error)) return new StatementError(message, code);
  return Object.assign(new Error(`PostgreSQL closed the connection: ${message}`), { code });
}

/** Node reports the attempts for several addresses of one name in an error without a message. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") {
    return error.errors.map((one: unknown) => errorMessage(one)).join(", ");
  }
  return errorMessage(error);
}
