"""A parsed file with the source that it is, and the two things that reading it can give: statements and reports."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.catalog.fields import FactValue, SubjectKind
from app.catalog.readings import Report, SourceNote, Statement
from app.ingest.documents.blocks import Blocks, Passage
from app.ingest.documents.front_matter import FrontMatter

Finding = Statement | Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One file, or the section of one that `heading` opens."""

    file: str
    front: FrontMatter
    blocks: Blocks
    source: SourceNote
    heading: str | None = None

    @property
    def title(self) -> str:
        """Give the heading of a section, the title of a whole page."""
        return self.heading or self.source.title

    def states(  # noqa: PLR0917  # what every statement has, in the order in which it is read
        self, subject: str, field: str, value: FactValue, raw: str, line: int, note: str | None = None
    ) -> Statement:
        """State a field of a size."""
        return self._statement("size", subject, field, value, (raw, line, note))

    def states_of_series(self, subject: str, field: str, value: FactValue, raw: str, line: int) -> Statement:
        """State a field of a series."""
        return self._statement("series", subject, field, value, (raw, line, None))

    def report(self, detail: str, line: int | None, column: str | None = None, cell: str | None = None) -> Report:
        """Report something that was not read."""
        return Report(file=self.file, line=line, column=column, cell=cell, detail=detail)

    def _statement(
        self, kind: SubjectKind, subject: str, field: str, value: FactValue, at: tuple[str, int, str | None]
    ) -> Statement:
        raw, line, note = at
        return Statement(
            kind=kind, subject=subject, field=field, value=value, raw=raw, file=self.file, line=line,
            source=self.source.id, note=note,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A page together with the files that it includes, itself first."""

    page: Page
    included: tuple[Page, ...] = ()

    @property
    def pages(self) -> tuple[Page, ...]:
        """Give all files of the document."""
        return (self.page, *self.included)

    def passages(self) -> Iterable[tuple[Page, Passage]]:
        """Give every passage with the file it stands in."""
        return ((page, passage) for page in self.pages for passage in page.blocks.passages)
