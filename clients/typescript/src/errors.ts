// The errors of the client. Those of the service are classes by status and code, in `generated/errors.ts`.

import type { ErrorCode, FieldError } from "./generated/types.js";

/** Every error of this client is one. */
export class HotlineError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** What an error response contained. */
export interface ErrorParts {
  status: number;
  code: string;
  message: string;
  details: unknown;
  requestId: string | undefined;
  retryAfter: number | undefined;
  operation: string;
}

/** The service answered with an error. Its subclasses are one for each status and each code. */
export class ApiError extends HotlineError {
  /** The HTTP status. */
  readonly status: number;
  /** A stable identifier for programs; empty if something between answered. */
  readonly code: ErrorCode | (string & {});
  /** Details for programs, such as the record that is in the way. */
  readonly details: unknown;
  /** Every invalid field, if there are any. */
  readonly fields: readonly FieldError[];
  /** The id of the request in the logs of the service. */
  readonly requestId: string | undefined;
  /** Seconds after which to try again, if the service said so. */
  readonly retryAfter: number | undefined;
  /** The operation, as the API document names it. */
  readonly operation: string;

  constructor(parts: ErrorParts) {
    const request = parts.requestId === undefined ? "" : ` (request ${parts.requestId})`;
    super(`${parts.operation}: ${parts.status} ${parts.code || "without a code"}: ${parts.message}${request}`);
    this.status = parts.status;
    this.code = parts.code;
    this.details = parts.details;
    this.fields = fieldsOf(parts.details);
    this.requestId = parts.requestId;
    this.retryAfter = parts.retryAfter;
    this.operation = parts.operation;
  }
}

function fieldsOf(details: unknown): FieldError[] {
  if (!Array.isArray(details)) return [];
  return details.filter((one): one is FieldError => typeof one?.field === "string" && typeof one?.code === "string");
}

/** The service could not be reached, or the connection ended before the response. */
export class ApiConnectionError extends HotlineError {}

/** The response did not arrive in time. */
export class ApiTimeoutError extends ApiConnectionError {}

/**
 * The record was made, but its secret was in a response that never arrived, and is not repeated. The record exists:
 * rotate its secret, or delete it.
 */
export class SecretLost extends HotlineError {
  /** The record without its secret. */
  readonly record: Readonly<Record<string, unknown>>;
  /** The id of the record. */
  readonly id: number | string;

  constructor(operation: string, field: string, record: Record<string, unknown>) {
    super(`${operation}: the response with the ${field} of record ${String(record.id)} was lost; rotate it, or delete the record`);
    this.record = record;
    this.id = record.id as number | string;
  }
}

/** Events have expired that were not read: read the records again. */
export class EventGap extends HotlineError {
  /** The last event that was read. */
  readonly after: number;
  /** The oldest event that is kept; `null` if there is none. */
  readonly oldestId: number | null;

  constructor(after: number, oldestId: number | null) {
    super(`events after ${after} have expired; the oldest is ${oldestId ?? "none"}: read the records again`);
    this.after = after;
    this.oldestId = oldestId;
  }
}

/** A request to a webhook was not sent by the service, or is too old. */
export class WebhookVerificationError extends HotlineError {}
