"""The clients: the generated resources, and what is written by hand beside them."""

from __future__ import annotations

from datetime import datetime
from types import TracebackType
from typing import Callable

import httpx

from hotline.call import RETRIES_MAX, RETRY_AFTER_MAX_SECONDS, TIMEOUT_SECONDS, ResponseInfo, Settings
from hotline.events import AsyncEvents, Events
from hotline.generated.async_resources import AsyncResources
from hotline.generated.resources import Resources
from hotline.transport import AsyncTransport, Transport
from hotline.webhooks import AsyncWebhooks, Webhooks


class Hotline(Resources):
    """A blocking client of a company: `Hotline()` reads `HOTLINE_URL` and `HOTLINE_API_KEY`. Threads may share it.

    :param url: The URL of the service.
    :param api_key: The API token, `sk_live_…`.
    :param timeout: Longest wait for a connection or for the next bytes of a response, in seconds.
    :param max_retries: Attempts after the first.
    :param max_retry_after: Longest wait that a response may ask for, in seconds; a longer one is an error.
    :param on_response: Called with every response, for logs and metrics.
    :param http: A client of `httpx` with settings of your own, such as a proxy. It is yours to close.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        max_retries: int = RETRIES_MAX,
        max_retry_after: float = RETRY_AFTER_MAX_SECONDS,
        on_response: Callable[[ResponseInfo], None] | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        settings = Settings(url, api_key, timeout, max_retries, max_retry_after, on_response)
        used = httpx.Client() if http is None else http
        self._owned = used if http is None else None
        transport = Transport(settings, used)
        super().__init__(transport)
        self._settings = settings
        self.events: Events = Events(transport)
        self.webhooks: Webhooks = Webhooks(transport)

    def now(self) -> datetime:
        """The time by the service's clock, as of its latest response; this machine's clock before the first.

        Filters such as `updated_from` are compared with it.
        """
        return self._settings.now()

    def close(self) -> None:
        """Closes the connections."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Hotline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncHotline(AsyncResources):
    """An asynchronous client of a company, with the arguments of `Hotline`."""

    def __init__(
        self,
        *,
        url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        max_retries: int = RETRIES_MAX,
        max_retry_after: float = RETRY_AFTER_MAX_SECONDS,
        on_response: Callable[[ResponseInfo], None] | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        settings = Settings(url, api_key, timeout, max_retries, max_retry_after, on_response)
        used = httpx.AsyncClient() if http is None else http
        self._owned = used if http is None else None
        transport = AsyncTransport(settings, used)
        super().__init__(transport)
        self._settings = settings
        self.events: AsyncEvents = AsyncEvents(transport)
        self.webhooks: AsyncWebhooks = AsyncWebhooks(transport)

    def now(self) -> datetime:
        """The time by the service's clock, as of its latest response; this machine's clock before the first."""
        return self._settings.now()

    async def close(self) -> None:
        """Closes the connections."""
        if self._owned is not None:
            await self._owned.aclose()

    async def __aenter__(self) -> AsyncHotline:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
