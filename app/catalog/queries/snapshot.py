"""What every question about sizes needs to know of a revision of the catalog: small, read once and kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Size
from app.catalog.projections import memory_bucket
from app.catalog.queries.language_models import ModelsByKey, load_models
from app.catalog.queries.lookups import GpuNames, load_gpu_names, load_region_codes, load_series_ids
from app.catalog.queries.pagination import get_revision

_MOST_TOTALS = 10_000
SMALL_CATALOG = 2_000
"""A catalog of so many sizes is looked through in a millisecond, which an event loop can spare."""


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """The mark of the revision, the names of regions and series, the number of sizes, the octaves of GPU memory.

    `models` are the rows of the language models by their names, `gpus` what GPUs are called, `totals` lengths of lists
    that were counted before, by question.
    """

    revision: str
    regions: frozenset[str]
    series: Mapping[str, str]
    sizes: int
    memory_buckets: tuple[int, ...]
    models: ModelsByKey
    gpus: GpuNames
    totals: dict[bytes, int] = field(default_factory=dict)

    @property
    def small(self) -> bool:
        """Whether all sizes are looked through in a millisecond."""
        return self.sizes <= SMALL_CATALOG

    def remember_total(self, question: str, total: int) -> None:
        """Keep a total; with too many of them all are forgotten."""
        if len(self.totals) >= _MOST_TOTALS:
            self.totals.clear()
        self.totals[_digest(question)] = total

    def cached_total(self, question: str) -> int | None:
        """The length of a list that was counted before."""
        return self.totals.get(_digest(question))


def _digest(question: str) -> bytes:
    """What stands for a question, which may have kilobytes."""
    return blake2b(question.encode(), digest_size=16).digest()


def load_snapshot(session: Session) -> CatalogSnapshot:
    """Read it by eight short queries, the mark first: what is read after it is at least as new."""
    size = table_of(Size).c
    memories = select(size.gpu_memory_gib).where(size.gpu_memory_gib > 0).distinct()
    return CatalogSnapshot(
        revision=get_revision(session),
        regions=load_region_codes(session),
        series=load_series_ids(session),
        sizes=session.execute(select(func.count()).select_from(table_of(Size))).scalar_one(),
        memory_buckets=tuple(sorted({memory_bucket(memory) for memory in session.execute(memories).scalars()})),
        models=load_models(session),
        gpus=load_gpu_names(session),
    )
