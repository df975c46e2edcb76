"""What a question asks of the database."""

from collections.abc import Callable
from datetime import date
from typing import TypeVar

from sqlalchemy.orm import Session

from app.catalog.queries.snapshot import Catalog, CatalogSnapshot
from app.db.statements import BoundStatement, Rows, fetch

T = TypeVar("T")


class Recording:
    """Reads in a session, and keeps what is asked, without the revision, which every question asks last.

    `after` is called with the number of each statement.
    """

    def __init__(self, session: Session, after: Callable[[int], None] = lambda _number: None) -> None:
        self.session, self.asked = session, list[BoundStatement]()
        self._after = after

    def fetch(self, bound: BoundStatement) -> Rows:
        """Return the rows of a statement."""
        self.asked.append(bound)
        rows = fetch(self.session, bound)
        self._after(len(self.asked))
        return rows


def statements_of(
    session: Session, snapshot: CatalogSnapshot, today: date, question: Callable[[Catalog], T]
) -> tuple[T, list[BoundStatement]]:
    """Return the answer to a question, and what it asked but for the revision."""
    recording = Recording(session)
    answer = Catalog(recording, snapshot, today).ask(question)
    return answer, [bound for bound in recording.asked if bound.statement.names != ("number", "digest")]
