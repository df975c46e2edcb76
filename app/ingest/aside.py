"""Reads a file in a process of its own, so that the next rows are read while those before are written."""

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, Pipe
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

CAN_READ_ASIDE = sys.platform == "linux" and (os.cpu_count() or 1) > 1
"""Elsewhere a copy of a process cannot rely on the system's libraries, or there is no processor for it."""


def read_aside(blocks: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Yield what an iterator yields, and raise what it raises; a copy of this process iterates, a few blocks ahead.

    The copy uses nothing but the file, so it may be made while a transaction is open. It ends when this process ends,
    or wants no more. Raises ChildProcessError where it is killed.
    """
    receiver, sender = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        receiver.close()  # else it would wait for itself when this process has ended
        _send_all(blocks, sender)
    sender.close()
    try:
        while (block := _receive(receiver)) is not None:
            if isinstance(block, Exception):
                raise block
            yield block
    finally:
        receiver.close()
        os.waitpid(child, 0)


def _send_all(blocks: Callable[[], Iterator[Any]], sender: Connection) -> NoReturn:
    """Send the blocks and then None, or the error; the copy ends without running what this process would at its end."""
    try:
        try:
            for block in blocks():
                sender.send_bytes(pickle.dumps(block, pickle.HIGHEST_PROTOCOL))
            sender.send_bytes(pickle.dumps(None))
        except Exception as error:  # noqa: BLE001  # raised again by the other process
            sender.send_bytes(pickle.dumps(error))
    finally:
        os._exit(0)


def _receive(receiver: Connection) -> Any:
    try:
        return pickle.loads(receiver.recv_bytes())  # noqa: S301  # made by a copy of this process
    except (EOFError, OSError) as error:  # the latter in the middle of a block
        raise ChildProcessError("the process that reads the file was ended") from error
