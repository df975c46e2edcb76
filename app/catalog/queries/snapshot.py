"""What every question about sizes needs to know of a revision of the catalog: small, read once and kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Size
from app.catalog.projections import octave_of
from app.catalog.queries.gpu_filters import GpuNames, read_gpu_names
from app.catalog.queries.language_models import Models, read_models
from app.catalog.queries.lookups import region_codes, series_titles
from app.catalog.queries.pagination import revision_of

_MOST_TOTALS = 10_000
SMALL = 2_000
"""A catalog of so many sizes is looked through in a millisecond, which an event loop can spare."""


@dataclass(frozen=True, slots=True)
class Known:
    """The mark of the revision, the names of regions and series, the number of sizes, the octaves of GPU memory.

    `models` are the rows of the language models by their names, `gpus` what GPUs are called, `totals` lengths of lists
    that were counted before, by question.
    """

    revision: str
    regions: frozenset[str]
    series: Mapping[str, str]
    sizes: int
    octaves: tuple[int, ...]
    models: Models
    gpus: GpuNames
    totals: dict[bytes, int] = field(default_factory=dict)

    @property
    def small(self) -> bool:
        """Whether all sizes are looked through in a millisecond."""
        return self.sizes <= SMALL

    def learn_total(self, question: str, total: int) -> None:
        """Keep a total; with too many of them all are forgotten."""
        if len(self.totals) >= _MOST_TOTALS:
            self.totals.clear()
        self.totals[_digest(question)] = total

    def total_of(self, question: str) -> int | None:
        """The length of a list that was counted before."""
        return self.totals.get(_digest(question))


def _digest(question: str) -> bytes:
    """What stands for a question, which may have kilobytes."""
    return blake2b(question.encode(), digest_size=16).digest()


def read_known(session: Session) -> Known:
    """Read it by eight short queries, the mark first: what is read after it is at least as new."""
    size = table_of(Size).c
    memories = select(size.gpu_memory_gib).where(size.gpu_memory_gib > 0).distinct()
    return Known(
        revision=revision_of(session),
        regions=region_codes(session),
        series=series_titles(session),
        sizes=session.execute(select(func.count()).select_from(table_of(Size))).scalar_one(),
        octaves=tuple(sorted({octave_of(memory) for memory in session.execute(memories).scalars()})),
        models=read_models(session),
        gpus=read_gpu_names(session),
    )
