"""`python -m tests.golden record FILE`, `replay FILE`, `show FILE`: see the package's docstring."""

import argparse
import difflib
import json
import os
import sqlite3
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TypeVar

from app.settings import PROJECT
from tests.golden.allowed import reason_of
from tests.golden.asking import Answer, Asker, as_text, make_questions, next_page, running
from tests.golden.questions import Question

SHOWN = 40
THREADS = 3
TABLE = "create table golden (id integer primary key, grp text, question text, status int, headers text, body blob)"
Asked = tuple[Question, Answer]
Given = TypeVar("Given")
Result = TypeVar("Result")


def main() -> int:
    """Record or replay; return the exit code: 1 if answers differ for no allowed reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("verb", choices=("record", "replay"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--group", default="", help="only groups that begin so")
    parser.add_argument("--every", type=int, default=1, help="replay every n-th question only")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(PROJECT)  # ask the service and the commands of this checkout, whatever is installed
    return record(options) if options.verb == "record" else replay(options)


def record(options: argparse.Namespace) -> int:
    """Ask all questions, and keep them with their answers."""
    options.file.unlink(missing_ok=True)
    with sqlite3.connect(options.file) as kept, running(options.database) as asker:
        kept.execute(TABLE)
        questions = make_questions(asker.client, options.seed)
        questions = [question for question in questions if question.group.startswith(options.group)]
        counts: Counter[str] = Counter()
        for question, answer in _progress(_walk_all(asker, questions), len(questions)):
            counts[question.group] += 1
            row = (question.group, as_text(question), *answer.packed)
            kept.execute("insert into golden (grp, question, status, headers, body) values (?, ?, ?, ?, ?)", row)
    for group, count in sorted(counts.items()):
        print(f"{count:6,} {group}")
    print(f"{counts.total():6,} in {len(counts)} groups, {options.file.stat().st_size / 2**20:.0f} MiB")
    return 0


def replay(options: argparse.Namespace) -> int:
    """Ask the kept questions again and print what differs."""
    with sqlite3.connect(options.file) as kept, running(options.database) as asker:
        where = "where grp like ? and id % ? = 0 order by id"
        rows = kept.execute(
            f"select question, status, headers, body from golden {where}", (options.group + "%", options.every)
        ).fetchall()

        def again(row: tuple[str, int, str, bytes]) -> tuple[Question, Answer, Answer]:
            question = Question(**json.loads(row[0]))
            return question, Answer(row[1], json.loads(row[2]), zlib.decompress(row[3])), asker.ask(question)

        asked, differing, allowed = Counter[str](), Counter[str](), Counter[str]()
        for question, before, after in _progress(_in_threads(again, rows), len(rows)):
            asked[question.group] += 1
            if before == after:
                continue
            if reason := reason_of(question, before, after):
                allowed[reason] += 1
                continue
            differing[question.group] += 1
            if differing[question.group] <= 3 and len(differing) <= SHOWN:
                print(f"\n--- {question.method} {question.target} {question.body[:300]}\n{_difference(before, after)}")
    for group, count in sorted(asked.items()):
        print(f"{count:6,} asked {differing[group]:6,} differ  {group}")
    for reason, count in allowed.items():
        print(f"{count:6,} allowed: {reason}")
    print(f"{asked.total():,} asked on {options.database}, {differing.total():,} differ, {allowed.total():,} allowed")
    return 1 if differing else 0


def _walk_all(asker: Asker, questions: list[Question]) -> Iterator[Asked]:
    def walk(question: Question) -> list[Asked]:
        asked: list[Asked] = []
        following: Question | None = question
        while following is not None:
            answer = asker.ask(following)
            asked.append((following, answer))
            following = next_page(following, answer)
        etag = asked[0][1].headers.get("etag")
        if question.headers.get("if-none-match") == "*" and etag:
            conditional = Question(question.group, question.target, headers={"if-none-match": etag})
            asked.append((conditional, asker.ask(conditional)))
        return asked

    for asked in _in_threads(walk, questions):
        yield from asked


def _in_threads(function: Callable[[Given], Result], given: list[Given]) -> Iterator[Result]:
    """Call a function for each, in threads; yield the results in their order."""
    with ThreadPoolExecutor(THREADS) as pool:
        rest = iter(given)
        while block := list(islice(rest, 300)):
            yield from pool.map(function, block)


def _progress(results: Iterator[Result], count: int) -> Iterator[Result]:
    began = time.monotonic()
    for number, result in enumerate(results, 1):
        if number % 1000 == 0:
            print(f"{number:,} ({count:,} questions) after {time.monotonic() - began:.0f} s", file=sys.stderr)
        yield result


def _difference(before: Answer, after: Answer) -> str:
    lines = []
    if before.status != after.status:
        lines.append(f"status {before.status} -> {after.status}")
    lines += [
        f"{name}: {before.headers.get(name)!r} -> {after.headers.get(name)!r}"
        for name in sorted({*before.headers, *after.headers})
        if before.headers.get(name) != after.headers.get(name)
    ]
    old, new = (
        one.body.decode(errors="replace").replace(",", ",\n").replace("><", ">\n<").splitlines()
        for one in (before, after)
    )
    lines += islice(difflib.unified_diff(old, new, lineterm="", n=1), 30)
    return "\n".join(line[:300] for line in lines)


if __name__ == "__main__":
    sys.exit(main())
