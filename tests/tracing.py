"""`python -m tests.tracing [REQUEST ...]`: which files of `app/` run while the service answers a request.

A request is a method and a URL, with a JSON body for POST: `GET /sizes?min_gpu_mem=80`, `POST /fit {"model": …}`.
A file counts when one of its functions is called between the request and the end of its answer; what is only imported
does not. Each request is traced the first time it is asked, so the answer comes from the database, not from the cache.
The database is `VMSIZES_DATABASE_URL`, seeded.
"""

import asyncio
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

from app.db import executors
from app.http import revision
from app.main import create_asgi_app
from app.settings import PROJECT

EXAMPLES = (
    "GET /sizes?min_gpu_mem=80",
    "GET /regions",
    'POST /fit {"model": "llama-3.3-70b", "inference": {"context_tokens": 8192, "concurrency": 16}}',
)
_APP = f"{PROJECT / 'app'}/"
WARM = ('POST /fit {"model": "llama-3.1-8b", "training": {}}', "GET /series?limit=1", "GET /sizes?q=nothing")
"""Asked before each request, so that what is loaded once does not count. The slow one comes first."""


def files_run(service: Any, requests: Iterable[str]) -> dict[str, list[str]]:
    """Return the files of `app/` that each request runs, relative to the project, in order."""
    recorder = Recorder()
    threading.setprofile(recorder)  # before the service starts its threads
    sys.setprofile(recorder)
    # A traced request may take longer than the service goes without checking for a new revision or another file of the
    # database. Neither is part of the request.
    usual = revision.REFRESH_SECONDS, executors.FILE_CHECK_SECONDS
    revision.REFRESH_SECONDS = executors.FILE_CHECK_SECONDS = 3600
    try:
        return asyncio.run(_files_run(service, list(requests), recorder))
    finally:
        revision.REFRESH_SECONDS, executors.FILE_CHECK_SECONDS = usual
        sys.setprofile(None)
        threading.setprofile(None)


class Recorder:
    """A profile function that collects the files whose functions are called."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call."""
        if event == "call" and frame.f_code.co_filename.startswith(_APP):
            self.files.add(str(Path(frame.f_code.co_filename).relative_to(PROJECT)))


async def _files_run(service: Any, requests: list[str], recorder: Recorder) -> dict[str, list[str]]:
    transport = httpx.ASGITransport(app=service)
    async with (
        service.app.router.lifespan_context(service.app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        found = {}
        for request in requests:
            for warming in WARM:
                await _ask(client, warming)
            recorder.files = set()
            answer = await _ask(client, request)
            found[request] = sorted(recorder.files)
            assert answer.status_code == 200, answer.text
        return found


async def _ask(client: httpx.AsyncClient, request: str) -> httpx.Response:
    method, _, rest = request.partition(" ")
    url, _, body = rest.partition(" ")
    return await client.request(method, url, content=body or None, headers={"content-type": "application/json"})


def main(arguments: list[str]) -> None:
    """Print how many files each request runs, and which."""
    for request, files in files_run(create_asgi_app(), arguments or EXAMPLES).items():
        print(f"{len(files)} files: {request}", *files, sep="\n  ")  # noqa: T201  # what the command is for


if __name__ == "__main__":
    main(sys.argv[1:])
