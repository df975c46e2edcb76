"""Log lines as JSON or as text, one line a record, whatever clients put into a value.

A record may have values by name: `log.info("request", extra={"fields": {"status": 200}})`. Lines that are written
while a request is answered also have its id.
"""

import json
import logging
import queue
import re
import sys
import threading
import time
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from typing import Any, Literal, TextIO

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered."""

MAX_QUEUED = 10_000
"""How many lines wait for a slow reader of standard error; further ones are dropped and counted."""

CLOSE_SECONDS = 1.0

_TALKATIVE = ("httpx", "httpcore", "alembic", "asyncio", "urllib3", "mcp")
"""Loggers of libraries that log at level info what is of interest to their developers."""

_PLAIN = re.compile(r"[\w./:@+,{}-]+", re.ASCII)


def configure(log_format: LogFormat, level: LogLevel, stream: TextIO | None = None) -> None:
    """Send the records of all loggers to a stream, standard error by default, in a format, from a level on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    handler.addFilter(_add_request_id)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


class BackgroundLogs:
    """Writes records in a thread instead of the handler that `configure` set: a reader who stalls stops no request."""

    def __init__(self) -> None:
        root = logging.getLogger()
        (self._handler,) = (handler for handler in root.handlers if isinstance(handler, logging.StreamHandler))
        self.dropped = 0
        self._queue: queue.Queue[logging.LogRecord | None] = queue.Queue(MAX_QUEUED)
        self._thread = threading.Thread(target=self._write, name="logs", daemon=True)
        self._thread.start()
        root.handlers[:] = [_QueueHandler(self)]

    def put(self, record: logging.LogRecord) -> None:
        """Queue a record, or drop and count it."""
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Write what is queued and go on without the thread; where it is not read, leave it after a second."""
        with suppress(queue.Full):
            self._queue.put(None, timeout=CLOSE_SECONDS)
            self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():
            logging.getLogger().handlers[:] = [self._handler]

    def _write(self) -> None:
        # Not by the handler, whose lock would be held while a write waits, and which the end of the program waits for.
        while (record := self._queue.get()) is not None:
            with suppress(OSError, ValueError):  # standard error is closed
                self._handler.stream.write(self._handler.format(record) + "\n")
                self._handler.stream.flush()


class _QueueHandler(logging.Handler):
    def __init__(self, logs: BackgroundLogs) -> None:
        super().__init__()
        self._logs = logs
        self.addFilter(_add_request_id)

    def emit(self, record: logging.LogRecord) -> None:
        self._logs.put(record)


def _add_request_id(record: logging.LogRecord) -> bool:
    if not hasattr(record, "request_id"):  # in the thread that writes, it is not known any more
        record.request_id = REQUEST_ID.get()
    return True


class _Formatter(logging.Formatter):
    def _values(self, record: logging.LogRecord) -> dict[str, Any]:
        request_id = getattr(record, "request_id", "")
        return ({"request_id": request_id} if request_id else {}) | getattr(record, "fields", {})

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802  # the name is logging's
        """Return the time in UTC with milliseconds (RFC 3339)."""
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03}Z"


class JsonFormatter(_Formatter):
    """One JSON object a line, in ASCII: time, level, logger, message, request_id, the record's values, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._values(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str).replace("\x7f", "\\u007f")


class TextFormatter(_Formatter):
    """`TIME level logger: message key=value …`; the lines of a traceback begin with spaces and `|`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with the traceback below it."""
        values = "".join(f" {name}={_quoted(value)}" for name, value in self._values(record).items())
        head = f"{self.formatTime(record)} {record.levelname.lower():7} {record.name}: {_escaped(record.getMessage())}"
        if not record.exc_info:
            return head + values
        trace = (f"\n    | {_escaped(line)}" for line in self.formatException(record.exc_info).splitlines())
        return head + values + "".join(trace)


def _quoted(value: object) -> str:
    text = "" if value is None else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text).replace("\x7f", "\\u007f")


@cache
def _unsafe() -> re.Pattern[str]:
    """Return what could start a line or hide one: control characters, separators of lines, marks of direction.

    It is compiled when it is first needed: its ranges take 3 ms, and nearly all lines are printable ASCII.
    """
    return re.compile(r"[^\x20-\x7e\u00a1-\u1fff\u2010-\u2027\u2030-\u205e\u20a0-\u2fff\u3001-\ud7ff]")


def _escaped(text: str) -> str:
    """Replace whatever could start a line of its own, or hide one, by its escape."""
    if text.isascii() and text.isprintable():
        return text
    return _unsafe().sub(lambda match: match[0].encode("unicode_escape").decode(), text)
