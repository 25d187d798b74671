"""The errors of the client. `generated.errors` has a class for each status and each code of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, cast

if TYPE_CHECKING:
    from hotline.generated.types import FieldError


class HotlineError(Exception):
    """The base class of all errors of this client."""


class ApiError(HotlineError):
    """The service answered with an error. Each status and each code has a subclass."""

    def __init__(
        self,
        *,
        operation: str,
        status: int,
        code: str,
        message: str,
        details: Any = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        request = f" (request {request_id})" if request_id else ""
        super().__init__(f"{operation}: {status} {code or 'without a code'}: {message}{request}")
        self.operation = operation
        """The operation, as the API document names it."""
        self.status = status
        """The HTTP status."""
        self.code = code
        """A stable identifier for programs; empty if a proxy answered instead of the service."""
        self.details = details
        """Details for programs, such as the conflicting record."""
        self.request_id = request_id
        """The id of the request in the logs of the service."""
        self.retry_after = retry_after
        """Seconds after which to try again, if the service said so."""

    @property
    def fields(self) -> list[FieldError]:
        """The invalid fields; empty if the error concerns none."""
        if not isinstance(self.details, list):
            return []
        fields = [item for item in self.details if isinstance(item, dict) and "field" in item and "code" in item]
        return cast("list[FieldError]", fields)


class ApiConnectionError(HotlineError):
    """The service could not be reached, or the connection ended before the response."""


class ApiTimeoutError(ApiConnectionError):
    """The response did not arrive in time."""


class SecretLost(HotlineError):
    """The record was created, but its secret was in a response that never arrived, and is not sent again.

    The record exists: rotate its secret, or delete it.
    """

    def __init__(self, operation: str, field: str, record: Mapping[str, Any]) -> None:
        super().__init__(
            f"{operation}: the response with the {field} of record {record['id']} was lost; rotate it, or delete the record"
        )
        self.record = record
        """The record without its secret."""
        self.id: Any = record["id"]
        """The id of the record."""


class EventGap(HotlineError):
    """Events have expired before they were read: read the records again."""

    def __init__(self, after: int, oldest_id: int | None) -> None:
        super().__init__(f"events after {after} have expired; the oldest is {oldest_id or 'none'}: read the records again")
        self.after = after
        """The last event that was read."""
        self.oldest_id = oldest_id
        """The oldest event that is retained; `None` if there is none."""


class WebhookVerificationError(HotlineError):
    """A request to a webhook was not sent by the service, or is too old."""
