"""A receiver of webhooks: a real HTTPS server on loopback, whose certificate an authority of the tests signed."""

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import trustme
from standardwebhooks import Webhook

from app.webhooks.sending import AllowedTargets, SendPolicy
from tests.waiting import LONGEST_SECONDS

LOOPBACK = AllowedTargets.parse("127.0.0.0/8,localhost")
QUICK = SendPolicy(attempts=3, first_wait=0.01, longest_wait=0.02, timeout=LONGEST_SECONDS)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self, secret: str = SECRET) -> Any:
        """Return the message, after the library of the convention has checked its signature and time."""
        return Webhook(secret).verify(self.body, self.headers)


@dataclass(slots=True)
class Receiver:
    """What was received, and how it is answered: one of `answers` after the other, then 204."""

    port: int
    requests: list[Received] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    seconds: float = 0.0
    before_answer: Callable[[], object] = lambda: None

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}/vmsizes"

    def then(self, *statuses: int, **headers: str) -> None:
        """Answer the next requests with these statuses."""
        self.answers += [
            (status, {name.replace("_", "-"): text for name, text in headers.items()}) for status in statuses
        ]


@contextmanager
def receiver_running(authority: trustme.CA, *names: str, address: str = "127.0.0.1") -> Iterator[Receiver]:
    """Run a receiver whose certificate is for the names."""
    receiver = Receiver(port=0)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): text for name, text in self.headers.items()}
            receiver.requests.append(Received(path=self.path, headers=headers, body=body))
            time.sleep(receiver.seconds)
            receiver.before_answer()
            status, more = receiver.answers.pop(0) if receiver.answers else (204, {})
            self.send_response(status)
            for name, text in more.items():
                self.send_header(name, text)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            pass  # a client that refuses the certificate closes the connection

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(tls)
    server = Server((address, 0), Handler)
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    receiver.port = server.server_port
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_authority(folder: Path) -> tuple[trustme.CA, Path]:
    """Return a new authority, and the file of its certificate for SSL_CERT_FILE."""
    authority, file = trustme.CA(), folder / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    return authority, file
