"""A message is signed and posted to exactly the address that was checked."""

import re
import socket
from threading import Event, Thread
from typing import Any

import pytest
import trustme
from standardwebhooks import WebhookVerificationError

from app.errors import BadData
from app.webhooks.sending import AllowedTargets, Sender, SendPolicy, SendResult, check_secret, new_secret
from tests.waiting import LONGEST_SECONDS
from tests.webhooks.receiver import LOOPBACK, QUICK, SECRET, Receiver, receiver_running

BODY = '{"type":"ping","timestamp":"2026-09-01T12:00:00Z","data":{"webhook":"größe"}}'


def send(url: str, *, allowed: AllowedTargets = LOOPBACK, policy: SendPolicy = QUICK, once: bool = False) -> SendResult:
    return Sender(allowed, policy).send(url, SECRET, "msg_1", BODY, once=once)


def test_the_library_of_the_convention_verifies_a_message(receiver: Receiver) -> None:
    assert send(receiver.url) == SendResult(attempts=1, status_code=204)
    (request,) = receiver.requests
    assert request.verified()["data"] == {"webhook": "größe"}
    assert (request.id, request.path) == ("msg_1", "/vmsizes")
    assert request.headers["content-type"] == "application/json"
    with pytest.raises(WebhookVerificationError):
        request.verified(new_secret())


def test_a_secret_has_32_random_bytes_and_a_given_one_is_checked() -> None:
    assert check_secret(f" {new_secret()}\n", "file") != new_secret()
    for text in (
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_c2hvcnQ=",
        "whsec_not base64!",
        f"whsec_{'A' * 200}",
    ):
        with pytest.raises(BadData, match=r"^secret\.txt: must be whsec_ and the base64 of 24 to 64 random bytes$"):
            check_secret(text, "secret.txt")


def test_what_failed_for_the_moment_is_tried_again_with_the_same_id(receiver: Receiver) -> None:
    receiver.then(500, 429)
    assert send(receiver.url) == SendResult(attempts=3, status_code=204)
    assert [request.id for request in receiver.requests] == ["msg_1"] * 3
    receiver.then(503, 502, 500, 204)
    failed = send(receiver.url)
    assert (failed.delivered, failed.attempts, failed.status_code, failed.error) == (False, 3, 500, "it answered 500")


@pytest.mark.parametrize("status", [400, 401, 404, 410, 422, 501])
def test_what_will_not_change_is_not_tried_again_at_once(receiver: Receiver, status: int) -> None:
    receiver.then(status)
    result = send(receiver.url)
    assert (result.attempts, result.status_code, result.gone) == (1, status, status == 410)


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.then(307, location="/elsewhere")
    result = send(receiver.url)
    assert result.error == "it answered 307, and redirects are not followed"
    assert [request.path for request in receiver.requests] == ["/vmsizes"]


def test_a_receiver_that_says_when_is_not_asked_before(receiver: Receiver) -> None:
    receiver.then(429, retry_after="3600")
    result = send(receiver.url)
    assert (result.attempts, result.retry_after) == (1, 3600)


def test_an_attempt_ends_after_its_time(receiver: Receiver) -> None:
    ended = Event()
    receiver.before_answer = lambda: ended.wait(LONGEST_SECONDS)
    result = send(receiver.url, policy=SendPolicy(timeout=0.1), once=True)
    ended.set()
    assert (result.error, result.status_code) == ("it did not answer in 0.1 s", None)


def test_an_answer_that_never_ends_is_not_read(receiver: Receiver) -> None:
    receiver.then(200, content_length="1000000000")
    assert send(receiver.url).delivered


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_a_name_or_number_that_leads_to_loopback_is_refused(receiver: Receiver, host: str) -> None:
    result = send(f"https://{host}:{receiver.port}/", allowed=AllowedTargets())
    assert result.attempts == 1
    assert "is not a public address" in str(result.error)
    assert receiver.requests == []


def test_a_name_without_an_address_is_told(receiver: Receiver) -> None:
    result = send("https://hooks.invalid/")
    assert str(result.error).startswith("the name hooks.invalid cannot be resolved")


def test_a_receiver_that_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert send(f"https://localhost:{port}/").error == "it cannot be reached: all connection attempts failed"


def test_a_certificate_for_another_name_is_refused(authority: trustme.CA) -> None:
    with receiver_running(authority, "other.example") as other:
        error = str(send(other.url).error)
        assert error.startswith("it cannot be reached: certificate verify failed: ")
        assert not re.search(r"[\[_]|\.$", error), error
        assert other.requests == []


@pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-OpenSSH\r\n"])
def test_what_is_no_server_of_webhooks_is_told_without_marks_of_python(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def hang_up() -> None:
            connection, _ = listening.accept()
            connection.sendall(greeting)
            connection.close()

        thread = Thread(target=hang_up)
        thread.start()
        error = str(send(f"https://localhost:{listening.getsockname()[1]}/", once=True).error)
        thread.join()
    assert re.fullmatch(r"it cannot be reached: [A-Za-z][^\[_]*[^.\s]", error), error


@pytest.fixture
def resolutions(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The answers of a name server, one after the other, for hook.example; they end with the last."""
    answers: list[list[str]] = []
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        if host != "hook.example":
            return real(host, port, *more, **named)
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [entry for address in found for entry in real(address, port, *more, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return answers


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(
    authority: trustme.CA, resolutions: list[list[str]]
) -> None:
    resolutions += [["127.0.0.1"], ["127.0.0.2"]]
    with receiver_running(authority, "hook.example") as checked:
        allowed = AllowedTargets.parse("127.0.0.1/32")
        url = f"https://hook.example:{checked.port}/"
        assert send(url, allowed=allowed).delivered
        assert resolutions == [["127.0.0.2"]], "the name was resolved once"
        assert checked.requests[0].headers["host"] == f"hook.example:{checked.port}"
        refused = send(url, allowed=allowed)
        assert refused.error == (
            "hook.example is at 127.0.0.2, which is not a public address; VMSIZES_WEBHOOK_ALLOWED_NETWORKS can allow it"
        )


def test_a_name_with_one_address_that_is_not_public_is_refused(
    authority: trustme.CA, resolutions: list[list[str]]
) -> None:
    resolutions += [["127.0.0.1", "10.1.2.3"]]
    with receiver_running(authority, "hook.example") as receiver:
        result = send(f"https://hook.example:{receiver.port}/", allowed=AllowedTargets.parse("127.0.0.0/8"))
        assert "hook.example is at 10.1.2.3" in str(result.error)
        assert receiver.requests == []


def test_another_address_is_tried_where_the_first_accepts_no_connection(
    authority: trustme.CA, resolutions: list[list[str]]
) -> None:
    resolutions += [["127.0.0.3", "127.0.0.1"]]
    with receiver_running(authority, "hook.example") as receiver:
        assert send(f"https://hook.example:{receiver.port}/").delivered


def test_a_proxy_of_the_environment_is_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert send(receiver.url).delivered
