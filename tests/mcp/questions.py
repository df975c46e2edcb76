"""300 questions that an agent could be asked, with answers from plain SQL: `python -m tests.mcp.questions`.

Answers come from the tables alone, by the queries below; nothing of `app` takes part but the connection. So they are of
whatever catalog they are made from. `python -m tests.mcp.questions` writes the questions of the catalog at
VMSIZES_DATABASE_URL, one JSON object a line; `--score FILE` compares the answers of an agent with them: lines of
`{"id": …, "answer": …}`.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from app.db.engines import make_engine
from app.settings import Settings
from tests.mcp.families import FAMILIES

TOTAL = 300
TOLERANCE = 0.005
"""Numbers agree within half a percent: agents round."""

PRICES = """
create temporary table current_price as
select ranked.* from (
    select price.*, row_number() over (
        partition by size_key, region, os, purchase
        order by seen_until desc, approximate_date, source_id, known_from desc, valid_from desc
    ) as place
    from price where valid_from <= '{day}'
) as ranked
where place = 1 and (
    select count(*) from price_list as list
    where list.source_id = ranked.source_id and list.region = ranked.region and list.os = ranked.os
    and list.purchase = ranked.purchase and list.day > coalesce(ranked.listed_until, ranked.seen_until)
    and list.day <= '{day}'
) < 3 and (ranked.ends_on is null or ranked.ends_on > '{day}')
"""
"""What is paid on a day: the price that was observed last, unless three complete lists of its source lack it since.

Refused prices are in another table; a reservation is not sold after its last day.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question in words, its answer, and how a program asks it: a tool, arguments, and what it reads of the reply."""

    id: str
    text: str
    answer: Any
    tool: str
    arguments: Mapping[str, Any]
    read: Callable[[Any], Any]

    def to_json(self) -> dict[str, Any]:
        """Return what an agent is given, with the answer that it is compared with."""
        return {"id": self.id, "question": self.text, "answer": self.answer}


def make_questions(connection: Connection, day: str) -> list[Question]:
    """Return the questions of a catalog as of a day."""
    connection.execute(text(PRICES.format(day=day)))
    connection.execute(text("create index current_price_key on current_price (size_key, region, os, purchase)"))
    found = [question for family in FAMILIES for question in _of_family(connection, family, day)]
    return found[:TOTAL]


def _of_family(connection: Connection, family: Any, day: str) -> Iterator[Question]:
    """Yield the questions of a family: rows of its query, taken at equal distances."""
    rows = [dict(row) for row in connection.execute(text(family.sql.format(day=day))).mappings()]
    chosen = rows[:: max(1, len(rows) // family.count)][: family.count]
    for number, row in enumerate(chosen, 1):
        yield Question(
            id=f"{family.name}-{number}",
            text=family.question.format(**row),
            answer=float(row["answer"]) if isinstance(row["answer"], Decimal) else row["answer"],
            tool=family.tool,
            arguments=family.arguments(row),
            read=family.read,
        )


def agrees(given: Any, answer: Any) -> bool:
    """Return whether an answer is right: a number within TOLERANCE, a text but for case, blanks and `Standard_`."""
    if isinstance(answer, bool) or answer is None:
        return given is answer or _plain(given) == _plain(answer)
    if isinstance(answer, int | float):
        try:
            number = float(re.sub(r"[^\d.eE+-]", "", str(given)))
        except ValueError:
            return False
        return abs(number - answer) <= TOLERANCE * max(abs(answer), 1e-9)
    return _plain(given) == _plain(answer)


def _plain(value: Any) -> str:
    return re.sub(r"[\s_-]", "", str(value).lower()).removeprefix("standard")


def score(questions: Sequence[Question], answers: Iterable[Mapping[str, Any]]) -> str:
    """Return how many answers are right, and the wrong ones, as text."""
    given = {one["id"]: one.get("answer") for one in answers}
    wrong = [one for one in questions if not agrees(given.get(one.id), one.answer)]
    lines = [f"{one.id}: {one.text} expected {one.answer!r}, got {given.get(one.id)!r}" for one in wrong]
    return "\n".join([*lines, f"{len(questions) - len(wrong)} of {len(questions)} right"])


def main() -> None:
    """Write the questions, or score a file of answers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--day", default="2026-09-01", help="the day whose prices and statuses are asked for")
    parser.add_argument("--score", type=Path, help="a file of answers, one JSON object a line: id, answer")
    options = parser.parse_args()
    with make_engine(Settings().database_url).connect() as connection:
        questions = make_questions(connection, options.day)
    if options.score:
        sys.stdout.write(f"{score(questions, map(json.loads, options.score.read_text().splitlines()))}\n")
    else:
        sys.stdout.writelines(f"{json.dumps(question.to_json())}\n" for question in questions)


if __name__ == "__main__":
    main()
