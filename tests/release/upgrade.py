"""`python -m tests.release.upgrade [COMMIT ...]`: upgrade a running service from commit to commit, and count failures.

Two services behind what stands for a load balancer are upgraded as docs/operations.md says: `vmsizes migrate` of the
next commit while both serve, then each is taken out, stopped, started anew and put back. Clients ask all the time, and
every answer of 500 or more and every broken connection counts. The commits are run by this environment.
"""

import argparse
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx

from app.settings import PROJECT
from tests.databases import START
from tests.processes import free_port
from tests.servers import CLIENT_TIMEOUT, get
from tests.waiting import LONGEST_SECONDS

CLIENTS = 2
START_SECONDS = 300
INSTANCES = 2
MAIN = "from app.cli import main; main()"
SIZE_PATHS = ("", "/facts", "/prices", "/similar", "/price-history?region=eastus", "/cost")
PATHS = (
    "/sizes?min_gpu_mem={number}&limit=20",
    "/sizes?region=westeurope&sort=price&min_memory={number}&include_total=false",
    "/sizes.csv?min_vcpus={number}",
    "/prices?size={size}&limit={number}",
    "/facets?min_memory={number}",
    "/compare?size={size}&size=Standard_NC40ads_H100_v5",
    "/changes?limit={number}",
    "/conflicts?limit={number}",
    "/fit?min_gpu_mem={number}&region=eastus",
    "/retirements?limit={number}",
    "/regions?limit={number}",
    "/sources?limit={number}",
    "/readyz",
    "/?min_vcpus={number}",
    "/ui/sizes/{size}",
    *(f"/sizes/{{size}}{path}" for path in SIZE_PATHS),
)
"""What the clients ask, each time with other values, so that the database has to be read.

A commit that has no such question answers 404, which is no failure.
"""


@dataclass(slots=True)
class Upgrade:
    """What the clients saw while the service went from one commit to the next."""

    commit: str
    seconds: float = 0.0
    requests: int = 0
    failures: Counter[str] = field(default_factory=Counter)


class Balancer:
    """Sends requests to the instances that are in, and knows when one that is taken out has answered its last."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.sizes: Sequence[str] = ()
        self.waiting: dict[str, int] = {}
        self.counted = Upgrade("")
        self._ended = threading.Event()

    def put_in(self, url: str) -> None:
        """Send requests to an instance from now on."""
        with self.lock:
            self.waiting[url] = 0

    def take_out(self, url: str) -> None:
        """Send no further request to an instance, and wait for its last answer."""
        with self.lock:
            before = self.waiting
            self.waiting = {other: count for other, count in before.items() if other != url}
            self.waiting[f"{url}#out"] = before[url]
            self.lock.wait_for(lambda: self.waiting[f"{url}#out"] == 0, LONGEST_SECONDS)
            del self.waiting[f"{url}#out"]

    def _add(self, url: str, by: int) -> None:
        name = url if url in self.waiting else f"{url}#out"
        self.waiting[name] += by
        self.lock.notify_all()

    def ask(self, seed: int) -> None:
        """Ask until the end."""
        chosen = random.Random(seed)
        with httpx.Client(trust_env=False, timeout=CLIENT_TIMEOUT) as client:
            while not self._ended.is_set():
                path = chosen.choice(PATHS)
                asked = path.format(size=chosen.choice(self.sizes), number=chosen.randint(1, 200))
                with self.lock:
                    url = chosen.choice([url for url in self.waiting if "#" not in url])
                    self._add(url, 1)
                try:
                    answer = client.get(url + asked)
                    failure = f"{answer.status_code} {path}" if answer.status_code >= 500 else ""
                    if failure and "json" in answer.headers["content-type"]:
                        failure += f": {answer.json()['detail']}"
                except httpx.TransportError as error:
                    failure = f"{type(error).__name__} {path}"
                with self.lock:
                    self._add(url, -1)
                    self.counted.requests += 1
                    if failure:
                        self.counted.failures[failure] += 1

    @contextmanager
    def clients(self) -> Any:
        """Run the clients meanwhile."""
        threads = [threading.Thread(target=self.ask, args=(seed,)) for seed in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()


def unpack(commit: str, to: Path) -> Path:
    """Write the files of a commit into a folder."""
    archive = subprocess.check_output(["git", "-C", str(PROJECT), "archive", commit, "app", "migrations", "seeds"])
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(to / commit, filter="data")
    return to / commit


def start(program: Path, url: str, log: Path) -> "tuple[subprocess.Popen[bytes], str]":
    """Serve by the program of a commit, and return its process and address once it is ready."""
    port = free_port()
    command = [sys.executable, "-c", MAIN, "serve", "--port", str(port)]
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=program, env=environment(program, url), stdout=output, stderr=output)
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                return process, f"http://127.0.0.1:{port}"
        except httpx.TransportError:
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the service of {program.name} did not start:\n{log.read_text()}")
        time.sleep(0.1)


def environment(program: Path, url: str) -> dict[str, str]:
    """Return the environment in which the program of a commit runs, on the database of a URL."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VMSIZES_")}
    own = {"PYTHONPATH": str(program), "VMSIZES_DATABASE_URL": url, "VMSIZES_CLOUDS": "azure"}
    # A busy machine makes answers slow, which is no failure of an upgrade.
    return kept | own | {"VMSIZES_REQUEST_SECONDS": str(int(CLIENT_TIMEOUT))}


def run(program: Path, url: str, log: Path, *arguments: str) -> None:
    """Run a command of the program of a commit."""
    command = [sys.executable, "-c", MAIN, *arguments]
    with log.open("ab") as output:
        subprocess.run(command, cwd=program, env=environment(program, url), check=True, stdout=output, stderr=output)


def upgrade_through(commits: Sequence[str], kind: str) -> list[Upgrade]:
    """Upgrade a service of the first commit, under load, to each of the others, and at the end read the seeds again."""
    balancer, seen = Balancer(), []
    with tempfile.TemporaryDirectory() as name, ExitStack() as ending:
        folder = Path(name)
        url = ending.enter_context(START[kind](folder)).create()
        program, log = unpack(commits[0], folder), folder / "log"
        run(program, url, log, "migrate")
        run(program, url, log, "ingest", "seeds")
        instances = [start(program, url, log) for _ in range(INSTANCES)]

        def stop() -> None:
            for process, _ in instances:
                process.terminate()
                process.wait(timeout=LONGEST_SECONDS)

        ending.callback(stop)
        for _, address in instances:
            balancer.put_in(address)

        listed = httpx.get(f"{instances[0][1]}/sizes?limit=100", trust_env=False, timeout=CLIENT_TIMEOUT).json()
        balancer.sizes = [size["name"] for size in listed["items"]]

        def count(what: str, began: float) -> None:
            with balancer.lock:
                seen.append(balancer.counted)
                balancer.counted = Upgrade("")
            seen[-1].commit, seen[-1].seconds = what, time.monotonic() - began
            print(f"{kind:10} {what:>16} {seen[-1].seconds:6.1f} s {seen[-1].requests:6,} requests", end="")
            print(f" {seen[-1].failures.total():6,} failed", flush=True)
            for failure, times in seen[-1].failures.most_common():
                print(f"{times:20,} x {failure}")

        with balancer.clients():
            for commit in commits[1:]:
                program, began = unpack(commit, folder), time.monotonic()
                run(program, url, log, "migrate")
                for place, (process, address) in enumerate(instances):
                    balancer.take_out(address)
                    process.terminate()
                    process.wait(timeout=LONGEST_SECONDS)
                    instances[place] = start(program, url, log)
                    balancer.put_in(instances[place][1])
                count(commit, began)
            began = time.monotonic()
            run(program, url, log, "ingest", "seeds")
            count("ingest seeds", began)
    return seen


def spread_commits(count: int, since: str) -> list[str]:
    """Return a commit and as many after it, at equal distances, the last of them HEAD."""
    command = ["git", "-C", str(PROJECT), "rev-list", "--reverse", "--abbrev-commit", f"{since}..HEAD"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return [since, *(listed[(index + 1) * len(listed) // count - 1] for index in range(min(count, len(listed))))]


def main() -> int:
    """Upgrade through the commits of the command line, or the last ten."""
    parser = argparse.ArgumentParser(prog="python -m tests.release.upgrade", description=__doc__)
    parser.add_argument("commits", nargs="*", help="from the oldest on; by default the last ten")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    options = parser.parse_args()
    seen = upgrade_through(options.commits or spread_commits(10, "HEAD~10"), options.database)
    failed = sum(upgrade.failures.total() for upgrade in seen)
    print(f"{len(seen) - 1} upgrades, {sum(upgrade.requests for upgrade in seen):,} requests, {failed:,} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
