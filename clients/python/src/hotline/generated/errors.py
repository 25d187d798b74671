# Generated from openapi.json by `make clients-generate`. Do not edit.
from __future__ import annotations

from hotline.errors import ApiError


class BadRequestError(ApiError):
    """The status 400."""


class UnauthorizedError(ApiError):
    """The status 401."""


class ForbiddenError(ApiError):
    """The status 403."""


class NotFoundError(ApiError):
    """The status 404."""


class MethodNotAllowedError(ApiError):
    """The status 405."""


class RequestTimeoutError(ApiError):
    """The status 408."""


class ConflictError(ApiError):
    """The status 409."""


class PreconditionFailedError(ApiError):
    """The status 412."""


class PayloadTooLargeError(ApiError):
    """The status 413."""


class UnsupportedMediaTypeError(ApiError):
    """The status 415."""


class RangeNotSatisfiableError(ApiError):
    """The status 416."""


class UnprocessableError(ApiError):
    """The status 422."""


class RateLimitedError(ApiError):
    """The status 429."""


class InternalError(ApiError):
    """The status 500."""


class UnavailableError(ApiError):
    """The status 503."""


class CompanyInactiveError(ForbiddenError):
    """`ERR_API_COMPANY_INACTIVE`"""


class ContactNotFoundError(NotFoundError):
    """`ERR_API_CONTACT_NOT_FOUND`"""


class ContactNotIdentifiedError(BadRequestError):
    """`ERR_API_CONTACT_NOT_IDENTIFIED`"""


class ContactUnreachableError(UnprocessableError):
    """`ERR_API_CONTACT_UNREACHABLE`"""


class ForbiddenOriginError(ForbiddenError):
    """`ERR_API_FORBIDDEN_ORIGIN`"""


class ForbiddenScopeError(ForbiddenError):
    """`ERR_API_FORBIDDEN_SCOPE`"""


class IdempotencyConflictError(ConflictError):
    """`ERR_API_IDEMPOTENCY_CONFLICT`"""


class InteractiveInvalidError(UnprocessableError):
    """`ERR_API_INTERACTIVE_INVALID`"""


class LinkExpiredError(ForbiddenError):
    """`ERR_API_LINK_EXPIRED`"""


class MediaEmptyError(BadRequestError):
    """`ERR_API_MEDIA_EMPTY`"""


class MediaTypeMismatchError(BadRequestError):
    """`ERR_API_MEDIA_TYPE_MISMATCH`"""


class MediaTypeUnknownError(BadRequestError):
    """`ERR_API_MEDIA_TYPE_UNKNOWN`"""


class NotEnabledError(ForbiddenError):
    """`ERR_API_NOT_ENABLED`"""


class SecondFactorError(ForbiddenError):
    """`ERR_API_SECOND_FACTOR`"""


class SignInError(UnauthorizedError):
    """`ERR_API_SIGN_IN`"""


class TicketClosedError(ConflictError):
    """`ERR_API_TICKET_CLOSED`"""


class ValidationError(UnprocessableError):
    """`ERR_API_VALIDATION`"""


class WindowClosedError(UnprocessableError):
    """`ERR_API_WINDOW_CLOSED`"""


ERRORS_BY_STATUS: dict[int, type[ApiError]] = {
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
}


ERRORS_BY_CODE: dict[str, tuple[int, type[ApiError]]] = {
    "ERR_API_BAD_REQUEST": (400, BadRequestError),
    "ERR_API_COMPANY_INACTIVE": (403, CompanyInactiveError),
    "ERR_API_CONFLICT": (409, ConflictError),
    "ERR_API_CONTACT_NOT_FOUND": (404, ContactNotFoundError),
    "ERR_API_CONTACT_NOT_IDENTIFIED": (400, ContactNotIdentifiedError),
    "ERR_API_CONTACT_UNREACHABLE": (422, ContactUnreachableError),
    "ERR_API_FORBIDDEN_ORIGIN": (403, ForbiddenOriginError),
    "ERR_API_FORBIDDEN_SCOPE": (403, ForbiddenScopeError),
    "ERR_API_IDEMPOTENCY_CONFLICT": (409, IdempotencyConflictError),
    "ERR_API_INTERACTIVE_INVALID": (422, InteractiveInvalidError),
    "ERR_API_INTERNAL": (500, InternalError),
    "ERR_API_LINK_EXPIRED": (403, LinkExpiredError),
    "ERR_API_MEDIA_EMPTY": (400, MediaEmptyError),
    "ERR_API_MEDIA_TYPE_MISMATCH": (400, MediaTypeMismatchError),
    "ERR_API_MEDIA_TYPE_UNKNOWN": (400, MediaTypeUnknownError),
    "ERR_API_METHOD_NOT_ALLOWED": (405, MethodNotAllowedError),
    "ERR_API_NOT_ENABLED": (403, NotEnabledError),
    "ERR_API_NOT_FOUND": (404, NotFoundError),
    "ERR_API_PAYLOAD_TOO_LARGE": (413, PayloadTooLargeError),
    "ERR_API_PRECONDITION_FAILED": (412, PreconditionFailedError),
    "ERR_API_RANGE_NOT_SATISFIABLE": (416, RangeNotSatisfiableError),
    "ERR_API_RATE_LIMITED": (429, RateLimitedError),
    "ERR_API_SECOND_FACTOR": (403, SecondFactorError),
    "ERR_API_SIGN_IN": (401, SignInError),
    "ERR_API_TICKET_CLOSED": (409, TicketClosedError),
    "ERR_API_UNAUTHORIZED": (401, UnauthorizedError),
    "ERR_API_UNAVAILABLE": (503, UnavailableError),
    "ERR_API_UNSUPPORTED_MEDIA_TYPE": (415, UnsupportedMediaTypeError),
    "ERR_API_VALIDATION": (422, ValidationError),
    "ERR_API_WINDOW_CLOSED": (422, WindowClosedError),
}
"""Every code of the document, the status it comes with, and its class."""
