"""`python -m tests.faults.kill --moments 100`: kill every writing command at random moments, and look what is left.

A command is killed by SIGKILL. Then the whole content of the database must be that of before, or that of a run that
nobody disturbed, and the command, run again, must end with the latter. The moments are spread over the time that the
command takes, from its start on; one in ten runs starts a new interpreter, the others are forked from one that has
loaded the program, which takes most of the time of a short command.
"""

import argparse
import io
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from sqlalchemy import func, inspect, make_url, select, table, text

from app.catalog.revisions import latest_revision
from app.catalog.store.revisions import compute_digest
from app.db import migrations
from app.db.engines import make_engine, read_session
from app.db.schema import newest_revision
from app.settings import PROJECT
from tests.databases import START, Databases, SqliteFiles

State = tuple[object, ...]
FRESH_INTERPRETER = 10
"""One run in this many starts a new interpreter."""
SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Command:
    """A command that writes, what the database has before it, and the files that it is given."""

    name: str
    arguments: tuple[str, ...]
    start: str
    """The database of before: `empty`, `schema`, `old` (an older schema with a catalog) or `catalog`."""


@dataclass(slots=True)
class Result:
    """What was left after each kill: how often the state of before and of after, and what was neither."""

    command: str
    seconds: float
    moments: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def commands(files: Path) -> tuple[Command, ...]:
    """Return every command that writes, on the files of a folder that `write_files` made."""
    return (
        Command("migrate (empty database)", ("migrate",), "empty"),
        Command("migrate (older schema)", ("migrate",), "old"),
        Command("ingest seeds", ("ingest", "seeds", str(files / "seeds")), "schema"),
        Command("ingest documents", ("ingest", "documents", str(files / "page.md")), "catalog"),
        Command("ingest prices", ("ingest", "prices", str(files / "prices.csv")), "catalog"),
        Command("ingest adjustments", ("ingest", "adjustments", str(files / "contoso.csv")), "catalog"),
        Command("forget", ("forget", "skypilot-azure-2024"), "catalog"),
        Command("refresh from a file", ("refresh", "exchange-rates", "--file", str(files / "rates.csv")), "catalog"),
        Command("webhooks add", ("webhooks", "add", "https://hooks.example.com/x", "--name", "x"), "catalog"),
    )


def write_files(folder: Path) -> None:
    """Write small seeds and a file for each command."""
    seeds, small = PROJECT / "seeds", folder / "seeds"
    small.mkdir()
    for name in ("sources", "regions", "gpus", "series", "sizes", "prices", "aliases"):
        shutil.copyfile(seeds / f"{name}.csv", small / f"{name}.csv")
    (small / "documents").mkdir()
    pages = sorted((seeds / "documents").glob("nd*.md"))
    for page in pages[:12]:
        shutil.copyfile(page, small / "documents" / page.name)
    shutil.copyfile(seeds / "documents" / "nvv4-series-2024-07-31.md", folder / "page.md")
    shutil.copyfile(small / "sources.csv", folder / "sources.csv")
    heading, *rows = (seeds / "prices.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    later = [
        [*row[:4], f"1.{number:05}", f"2026-0{1 + number % 8}-11", *row[6:]] for number, row in enumerate(cells * 6)
    ]
    (folder / "prices.csv").write_text(
        "\n".join([heading, *{",".join(row[:4] + row[5:6]): ",".join(row) for row in later}.values()]) + "\n"
    )
    (folder / "contoso.csv").write_text(
        "name,size,region,purchase,discount_percent,usd_per_hour\n"
        "EA discount,,eastus,,12,\nND at a fixed price,ND*,,on_demand,,40\n"
    )
    (folder / "rates.csv").write_text(
        "Date,USD,JPY,GBP\n2026-11-20,1.1561,181.2,0.8801\n2026-11-19,1.1541,180.9,0.8799\n"
    )


def state_of(url: str) -> State:
    """Return what a database holds: its schema, the digest of every row, the revision, how many rows tables have."""
    if make_url(url).get_backend_name() == "sqlite" and not Path(make_url(url).database or "").exists():
        return ("no file",)
    engine = make_engine(url, pooled=False)
    try:
        with engine.connect() as connection:
            # How a refresh ended is noted behind it: one that was killed has not ended.
            names = sorted({*inspect(connection).get_table_names()} - {"feed_run"})
            counts = tuple(
                (name, connection.execute(select(func.count()).select_from(table(name))).scalar_one()) for name in names
            )
            if "alembic_version" not in names:
                return (None, counts)
            version = connection.execute(text("select version_num from alembic_version")).scalar()
        if version != newest_revision():
            return (version, counts)
        with read_session(engine) as session:
            revision = latest_revision(session)
            digest, _ = compute_digest(session)
        return (version, digest, revision and (revision["number"], revision["digest"]), counts)
    finally:
        engine.dispose()


class Program:
    """Runs the command line with a database, whole or until it is killed."""

    def __init__(self, files: Path) -> None:
        self._environment = {**os.environ, "VMSIZES_SEEDS": str(files / "seeds"), "VMSIZES_WAIT_SECONDS": "30"}
        self._output = files / "output"
        self._home = files

    def run(self, url: str, arguments: Sequence[str], *, kill_after: float | None = None, fresh: bool = False) -> int:
        """Run a command; returns its exit code, -9 if it was killed before its end."""
        environment = {**self._environment, "VMSIZES_DATABASE_URL": url}
        pid = self._start(environment, arguments) if fresh else self._fork(environment, arguments)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def output(self) -> str:
        """Return what the last command printed."""
        return self._output.read_text()

    def _start(self, environment: Mapping[str, str], arguments: Sequence[str]) -> int:
        program = str(Path(sys.executable).with_name("vmsizes"))
        with self._output.open("wb") as output:
            started = subprocess.Popen(
                [program, *arguments], env=environment, stdout=output, stderr=output, cwd=self._home
            )
        started.returncode = 0  # it is waited for by its id
        return started.pid

    def _fork(self, environment: Mapping[str, str], arguments: Sequence[str]) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 70
        try:
            output = os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.stdout, sys.stderr = io.TextIOWrapper(io.FileIO(1, "w")), io.TextIOWrapper(io.FileIO(2, "w"))
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(self._home)
            sys.argv = ["vmsizes", *arguments]
            import_module("app.cli").main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # noqa: BLE001  # the parent sees the code, the file the traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def preload() -> None:
    """Load what the commands load, so that a forked one begins with its work."""
    for name in ("alembic.command", "alembic.config", "psycopg", *(f"app.cli.{each}" for each in _COMMAND_MODULES)):
        import_module(name)


_COMMAND_MODULES = ("commands", "ingest", "refresh", "serve", "webhooks")


@contextmanager
def starts(databases: Databases, program: Program, files: Path) -> Iterator[dict[str, str]]:
    """Make the databases that commands begin with, by their names in Command."""
    made = {name: databases.create() for name in ("empty", "schema", "catalog", "old")}
    for name in ("schema", "catalog", "old"):
        _check(program.run(made[name], ("migrate",)), program)
    for name in ("catalog", "old"):
        _check(program.run(made[name], ("ingest", "seeds", str(files / "seeds"))), program)
    engine = make_engine(made["old"], pooled=False)
    migrations.downgrade(engine, "0020")
    engine.dispose()
    yield made


def _check(code: int, program: Program) -> None:
    if code:
        raise RuntimeError(program.output())


@dataclass(frozen=True, slots=True)
class Scene:
    """Where commands are killed: the databases that they begin with by name, the program, and its files."""

    databases: Databases
    made: Mapping[str, str]
    program: Program
    files: Path


@contextmanager
def scene_on(kind: str, folder: Path) -> Iterator[Scene]:
    """Start one kind of database, and make the files and databases that commands begin with."""
    preload()
    (folder / "databases").mkdir()
    write_files(folder)
    program = Program(folder)
    with START[kind](folder / "databases") as databases, starts(databases, program, folder) as made:
        yield Scene(databases, made, program, folder)


def _copy(databases: Databases, url: str) -> str:
    if isinstance(databases, SqliteFiles):
        target = databases.create()
        source = Path(make_url(url).database or "")
        if source.exists():
            with (
                closing(sqlite3.connect(source)) as old,
                closing(sqlite3.connect(make_url(target).database or "")) as new,
            ):
                old.backup(new)
        return target
    return databases.copy(url)


def try_command(command: Command, moments: int, scene: Scene, chance: random.Random) -> Result:
    """Kill a command at that many moments, each on a copy of its database, and compare what is left."""
    databases, program, start = scene.databases, scene.program, scene.made[command.start]
    before = state_of(start)
    seconds = {}
    for fresh in (False, True):
        taken = []
        for _ in range(SAMPLES):
            url, begun = _copy(databases, start), time.monotonic()
            _check(program.run(url, command.arguments, fresh=fresh), program)
            taken.append(time.monotonic() - begun)
            after = state_of(url)
            databases.drop(url)
        seconds[fresh] = sorted(taken)[SAMPLES // 2]
    result = Result(command.name, seconds[False])
    if before == after:
        result.wrong.append("the command changes nothing: nothing was tested")
    untouched = (before, ("no file",), (None, ()))
    for number in range(moments):
        fresh = number % FRESH_INTERPRETER == 0
        url, moment = _copy(databases, start), chance.uniform(0, 1.05 * seconds[fresh])
        code = program.run(url, command.arguments, kill_after=moment, fresh=fresh)
        left = state_of(url)
        result.moments += 1
        result.counts["ended before" if code == 0 else "killed"] += 1
        found = "as after" if left == after else "as before" if left in untouched else "BETWEEN"
        result.counts[found] += 1
        if found == "BETWEEN":
            result.wrong.append(f"killed after {moment:.3f} s: {left}")
        again = program.run(url, command.arguments)
        # A second run may refuse what is there already, and leaves it as it is.
        if state_of(url) == after and (again == 0 or found == "as after"):
            result.counts["rerun right"] += 1
        else:
            result.wrong.append(f"killed after {moment:.3f} s, rerun: exit {again}, {program.output()[-300:]}")
        databases.drop(url)
    return result


def row(kind: str, result: Result) -> str:
    """Return a row of the table."""
    counts = result.counts
    cells = (
        *(kind, f"`{result.command}`", f"{result.seconds:.2f} s", result.moments, counts["killed"]),
        *(counts["as before"], counts["as after"], counts["BETWEEN"], counts["rerun right"]),
    )
    return f"| {' | '.join(map(str, cells))} |"


HEADINGS = "| database | command | takes | moments | killed | as before | as after | between | rerun right |"


def run(kind: str, moments: int, words: Sequence[str], seed: int) -> int:
    """Print the rows of one kind of database; returns how many things were wrong."""
    wrong, chance = 0, random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="vmsizes-kills-") as folder, scene_on(kind, Path(folder)) as scene:
        for command in commands(scene.files):
            if words and not any(word in command.name for word in words):
                continue
            result = try_command(command, moments, scene, chance)
            print(row(kind, result), flush=True)  # noqa: T201
            for problem in result.wrong[:5]:
                print(f"  !! {problem}", file=sys.stderr, flush=True)  # noqa: T201
            wrong += len(result.wrong)
    return wrong


def main(arguments: Sequence[str]) -> int:
    """Print a table; returns 1 where anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kill")
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("words", nargs="*", help="only commands whose names contain one of these")
    given = parser.parse_args(arguments)
    print(f"seed {given.seed}\n\n{HEADINGS}\n|{' --- |' * 9}", flush=True)  # noqa: T201
    wrong = sum(run(kind, given.moments, given.words, given.seed) for kind in given.databases.split(","))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
