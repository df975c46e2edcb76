"""A TCP proxy between the service and PostgreSQL that holds, refuses, delays or cuts what it forwards."""

import socket
import struct
import threading
import time
from contextlib import suppress

_CUT_AFTER_BYTES = 300
_DELAY_SECONDS = 0.1


class Proxy:
    """Forwards a port of its own to another one, in threads; every change holds for connections that are open, too."""

    def __init__(self, port: int) -> None:
        self._to, self._listener = port, socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._mode = "forward"
        self._go_on = threading.Event()
        self._go_on.set()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self) -> None:
        """Forward nothing and close nothing."""
        self._mode = "hold"
        self._go_on.clear()

    def refuse(self) -> None:
        """Reset every connection."""
        self._mode = "refuse"
        self._reset_all()

    def delay(self) -> None:
        """Forward everything late."""
        self._mode = "delay"

    def cut(self) -> None:
        """Reset each connection in the middle of an answer."""
        self._mode = "cut"

    def reset(self) -> None:
        """Forward again."""
        self._mode = "forward"
        self._go_on.set()

    def close(self) -> None:
        """Stop accepting, and close all connections."""
        self.reset()
        self._listener.close()
        self._reset_all()

    def _reset_all(self) -> None:
        for connection in tuple(self._open):
            _reset(connection)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._mode == "refuse":
                _reset(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                _reset(client)
                continue
            self._open |= {client, server}
            for source, target, answers in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._forward, args=(source, target, answers), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        forwarded = 0
        with suppress(OSError):
            while data := source.recv(65_536):
                self._go_on.wait()
                if self._mode == "delay":
                    time.sleep(_DELAY_SECONDS)
                if self._mode == "cut" and answers:
                    forwarded += len(data)
                    if forwarded > _CUT_AFTER_BYTES:
                        target.sendall(data[: len(data) // 2])
                        break
                target.sendall(data)
        for connection in (source, target):
            self._open.discard(connection)
            _reset(connection)


def _reset(connection: socket.socket) -> None:
    """Close a connection with RST, as a broken network does."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
