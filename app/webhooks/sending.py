"""Signs messages and posts them: a few attempts in a row, each with a time limit. Answers are not read."""

import asyncio
import base64
import binascii
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus

import httpx
import stamina
from standardwebhooks import Webhook

from app.errors import BadData
from app.ingest.feeds.fetching import RETRIED_STATUSES, USER_AGENT, retry_after
from app.webhooks.targets import AllowedTargets, CheckedTransport, RefusedAddress, UnknownHost

SECRET_PREFIX = "whsec_"  # noqa: S105  # what secrets begin with
SECRET_BYTES = 32
_ALLOWED_SECRET_BYTES = range(24, 65)
"""How long the convention lets a secret be."""


def new_secret() -> str:
    """Return a new random secret."""
    return f"{SECRET_PREFIX}{base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"


def check_secret(text: str, file: str) -> str:
    """Return a secret without the white space around it; raises BadData naming the file, but not the secret."""
    secret = text.strip()
    try:
        length = len(base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True))
    except (binascii.Error, ValueError):
        length = 0
    if not secret.startswith(SECRET_PREFIX) or length not in _ALLOWED_SECRET_BYTES:
        raise BadData("must be whsec_ and the base64 of 24 to 64 random bytes", file=file)
    return secret


@dataclass(frozen=True, slots=True, kw_only=True)
class SendPolicy:
    """How often a message is tried in one run, how long to wait in between, and the limit of an attempt, seconds."""

    attempts: int = 3
    first_wait: float = 1.0
    longest_wait: float = 5.0
    timeout: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The outcome of the attempts of one run: the last status, if any, and why the message was not delivered."""

    attempts: int
    status_code: int | None
    error: str | None = None
    retry_after: float | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver took the message."""
        return self.error is None

    @property
    def gone(self) -> bool:
        """Whether the receiver wants no more messages."""
        return self.status_code == HTTPStatus.GONE


class _NotDelivered(Exception):
    def __init__(self, error: str, response: httpx.Response | None = None, *, is_temporary: bool) -> None:
        super().__init__(error)
        self.status_code = response.status_code if response is not None else None
        self.retry_after = retry_after(response) if response is not None else None
        self.is_temporary = is_temporary and self.retry_after is None


class Sender:
    """Posts messages to webhooks whose addresses are public or allowed."""

    def __init__(self, allowed: AllowedTargets, policy: SendPolicy | None = None) -> None:
        self._allowed, self._policy = allowed, policy or SendPolicy()
        self._tls = httpx.create_ssl_context()

    def send(self, url: str, secret: str, message_id: str, body: str, *, once: bool = False) -> SendResult:
        """Post a message as `post` does, where no event loop runs."""
        return asyncio.run(self.post(url, secret, message_id, body, once=once))

    async def post(self, url: str, secret: str, message_id: str, body: str, *, once: bool = False) -> SendResult:
        """Post a message until the receiver takes it, as often as the policy allows, or `once`."""
        policy, tries = self._policy, 0
        retries = stamina.retry_context(
            on=lambda error: isinstance(error, _NotDelivered) and error.is_temporary,
            attempts=1 if once else policy.attempts,
            timeout=None,
            wait_initial=policy.first_wait,
            wait_max=policy.longest_wait,
            wait_jitter=policy.first_wait,
        )
        # A transport of its own for each message: connections are not kept, so each is to addresses checked just now.
        transport = CheckedTransport(self._allowed, self._tls)
        async with httpx.AsyncClient(transport=transport, timeout=policy.timeout, trust_env=False) as client:
            try:
                async for attempt in retries:
                    with attempt:
                        tries = attempt.num
                        status = await self._post_once(client, url, secret, message_id, body)
                        return SendResult(attempts=tries, status_code=status)
            except _NotDelivered as failure:
                return SendResult(
                    attempts=tries,
                    status_code=failure.status_code,
                    error=str(failure),
                    retry_after=failure.retry_after,
                )
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _post_once(self, client: httpx.AsyncClient, url: str, secret: str, message_id: str, body: str) -> int:
        """Post once and return the status, 200 to 299; raises _NotDelivered."""
        headers = signed_headers(secret, message_id, body, datetime.now(UTC))
        try:
            async with (
                asyncio.timeout(self._policy.timeout),
                client.stream("POST", url, content=body.encode(), headers=headers) as response,
            ):
                # The body of the answer is not read; leaving the block closes the connection.
                if response.is_success:
                    return response.status_code
                raise _NotDelivered(
                    f"it answered {response.status_code}{', and redirects are not followed' * response.is_redirect}",
                    response,
                    is_temporary=response.status_code in RETRIED_STATUSES,
                )
        except (TimeoutError, httpx.TimeoutException) as error:
            text = f"it did not answer in {self._policy.timeout:g} s"
            raise _NotDelivered(text, is_temporary=True) from error
        except httpx.HTTPError as error:
            text = f"it cannot be reached: {str(error) or type(error).__name__}"
            raise _NotDelivered(text, is_temporary=True) from error
        except (RefusedAddress, UnknownHost) as error:
            raise _NotDelivered(str(error), is_temporary=False) from error


def signed_headers(secret: str, message_id: str, body: str, sent_at: datetime) -> dict[str, str]:
    """Return the headers of an attempt; the signature covers the id, the time of the attempt and the body."""
    return {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        "webhook-id": message_id,
        "webhook-timestamp": str(int(sent_at.timestamp())),
        "webhook-signature": Webhook(secret).sign(message_id, sent_at, body),
    }
