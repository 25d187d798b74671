// Generated from openapi.json by `make clients-generate`. Do not edit.

import { ApiError } from "../errors.js";

/** The status 400. */
export class BadRequestError extends ApiError {}

/** The status 401. */
export class UnauthorizedError extends ApiError {}

/** The status 403. */
export class ForbiddenError extends ApiError {}

/** The status 404. */
export class NotFoundError extends ApiError {}

/** The status 405. */
export class MethodNotAllowedError extends ApiError {}

/** The status 408. */
export class RequestTimeoutError extends ApiError {}

/** The status 409. */
export class ConflictError extends ApiError {}

/** The status 412. */
export class PreconditionFailedError extends ApiError {}

/** The status 413. */
export class PayloadTooLargeError extends ApiError {}

/** The status 415. */
export class UnsupportedMediaTypeError extends ApiError {}

/** The status 416. */
export class RangeNotSatisfiableError extends ApiError {}

/** The status 422. */
export class UnprocessableError extends ApiError {}

/** The status 429. */
export class RateLimitedError extends ApiError {}

/** The status 500. */
export class InternalError extends ApiError {}

/** The status 503. */
export class UnavailableError extends ApiError {}

/** `ERR_API_COMPANY_INACTIVE` */
export class CompanyInactiveError extends ForbiddenError {}

/** `ERR_API_CONTACT_NOT_FOUND` */
export class ContactNotFoundError extends NotFoundError {}

/** `ERR_API_CONTACT_NOT_IDENTIFIED` */
export class ContactNotIdentifiedError extends BadRequestError {}

/** `ERR_API_CONTACT_UNREACHABLE` */
export class ContactUnreachableError extends UnprocessableError {}

/** `ERR_API_FORBIDDEN_ORIGIN` */
export class ForbiddenOriginError extends ForbiddenError {}

/** `ERR_API_FORBIDDEN_SCOPE` */
export class ForbiddenScopeError extends ForbiddenError {}

/** `ERR_API_IDEMPOTENCY_CONFLICT` */
export class IdempotencyConflictError extends ConflictError {}

/** `ERR_API_INTERACTIVE_INVALID` */
export class InteractiveInvalidError extends UnprocessableError {}

/** `ERR_API_LINK_EXPIRED` */
export class LinkExpiredError extends ForbiddenError {}

/** `ERR_API_MEDIA_EMPTY` */
export class MediaEmptyError extends BadRequestError {}

/** `ERR_API_MEDIA_TYPE_MISMATCH` */
export class MediaTypeMismatchError extends BadRequestError {}

/** `ERR_API_MEDIA_TYPE_UNKNOWN` */
export class MediaTypeUnknownError extends BadRequestError {}

/** `ERR_API_NOT_ENABLED` */
export class NotEnabledError extends ForbiddenError {}

/** `ERR_API_SECOND_FACTOR` */
export class SecondFactorError extends ForbiddenError {}

/** `ERR_API_SIGN_IN` */
export class SignInError extends UnauthorizedError {}

/** `ERR_API_TICKET_CLOSED` */
export class TicketClosedError extends ConflictError {}

/** `ERR_API_VALIDATION` */
export class ValidationError extends UnprocessableError {}

/** `ERR_API_WINDOW_CLOSED` */
export class WindowClosedError extends UnprocessableError {}

export const ERRORS_BY_STATUS: Readonly<Record<number, typeof ApiError>> = {
  400: BadRequestError,
  401: UnauthorizedError,
  403: ForbiddenError,
  404: NotFoundError,
  405: MethodNotAllowedError,
  408: RequestTimeoutError,
  409: ConflictError,
  412: PreconditionFailedError,
  413: PayloadTooLargeError,
  415: UnsupportedMediaTypeError,
  416: RangeNotSatisfiableError,
  422: UnprocessableError,
  429: RateLimitedError,
  500: InternalError,
  503: UnavailableError,
};

/** Every code of the document, the status it comes with, and its class. */
export const ERRORS_BY_CODE: Readonly<Record<string, { status: number; error: typeof ApiError }>> = {
  ERR_API_BAD_REQUEST: { status: 400, error: BadRequestError },
  ERR_API_COMPANY_INACTIVE: { status: 403, error: CompanyInactiveError },
  ERR_API_CONFLICT: { status: 409, error: ConflictError },
  ERR_API_CONTACT_NOT_FOUND: { status: 404, error: ContactNotFoundError },
  ERR_API_CONTACT_NOT_IDENTIFIED: { status: 400, error: ContactNotIdentifiedError },
  ERR_API_CONTACT_UNREACHABLE: { status: 422, error: ContactUnreachableError },
  ERR_API_FORBIDDEN_ORIGIN: { status: 403, error: ForbiddenOriginError },
  ERR_API_FORBIDDEN_SCOPE: { status: 403, error: ForbiddenScopeError },
  ERR_API_IDEMPOTENCY_CONFLICT: { status: 409, error: IdempotencyConflictError },
  ERR_API_INTERACTIVE_INVALID: { status: 422, error: InteractiveInvalidError },
  ERR_API_INTERNAL: { status: 500, error: InternalError },
  ERR_API_LINK_EXPIRED: { status: 403, error: LinkExpiredError },
  ERR_API_MEDIA_EMPTY: { status: 400, error: MediaEmptyError },
  ERR_API_MEDIA_TYPE_MISMATCH: { status: 400, error: MediaTypeMismatchError },
  ERR_API_MEDIA_TYPE_UNKNOWN: { status: 400, error: MediaTypeUnknownError },
  ERR_API_METHOD_NOT_ALLOWED: { status: 405, error: MethodNotAllowedError },
  ERR_API_NOT_ENABLED: { status: 403, error: NotEnabledError },
  ERR_API_NOT_FOUND: { status: 404, error: NotFoundError },
  ERR_API_PAYLOAD_TOO_LARGE: { status: 413, error: PayloadTooLargeError },
  ERR_API_PRECONDITION_FAILED: { status: 412, error: PreconditionFailedError },
  ERR_API_RANGE_NOT_SATISFIABLE: { status: 416, error: RangeNotSatisfiableError },
  ERR_API_RATE_LIMITED: { status: 429, error: RateLimitedError },
  ERR_API_SECOND_FACTOR: { status: 403, error: SecondFactorError },
  ERR_API_SIGN_IN: { status: 401, error: SignInError },
  ERR_API_TICKET_CLOSED: { status: 409, error: TicketClosedError },
  ERR_API_UNAUTHORIZED: { status: 401, error: UnauthorizedError },
  ERR_API_UNAVAILABLE: { status: 503, error: UnavailableError },
  ERR_API_UNSUPPORTED_MEDIA_TYPE: { status: 415, error: UnsupportedMediaTypeError },
  ERR_API_VALIDATION: { status: 422, error: ValidationError },
  ERR_API_WINDOW_CLOSED: { status: 422, error: WindowClosedError },
};
