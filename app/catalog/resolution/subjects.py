"""Maps the spellings of sizes, series and GPUs in sources to the keys of the catalog."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.catalog.names import series_key, size_key
from app.catalog.readings import StatedFact

_GENERIC_WORDS = re.compile(
    r"\b(nvidia|amd|gpus?|tensor core|graphics|accelerators?|\d+ ?gi?b)\b|[®™(),]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuName:
    """The names by which a GPU model is recognised; `memory_gib` is the marketed memory of one GPU."""

    id: str
    vendor: str
    model: str
    memory_gib: float | None
    aliases: frozenset[str]


def gpu_text_key(text: str) -> str:
    """Return what distinguishes models in a GPU's text: `pcie a100` for `Nvidia PCIe A100 GPU (80GB)`."""
    return " ".join(_GENERIC_WORDS.sub(" ", text.lower()).split())


SAME_MEMORY = 0.08
"""How much of a GPU's memory two sources of one model may differ by: GB and GiB, with and without what is reserved.

A B300 has 288 GB by its maker, 268.6 GiB by one cloud's API and 262 GiB by another's; models of one name differ more.
"""


def find_gpu(text: str, memory_gib: float | None, gpus: Iterable[GpuName]) -> GpuName | None:
    """Find the GPU model with this text and about this memory per GPU; None where no model matches, or several do."""
    key = gpu_text_key(text)
    named = [gpu for gpu in gpus if key in gpu.aliases]
    if memory_gib is not None:
        sized = [(gpu, abs(gpu.memory_gib - memory_gib)) for gpu in named if gpu.memory_gib is not None]
        exact = [gpu for gpu, difference in sized if difference < 1]
        named = exact or [gpu for gpu, difference in sized if difference < SAME_MEMORY * memory_gib]
    return named[0] if len(named) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectKeys:
    """The keys of sizes by alias, and the ids of series by every name they go by."""

    aliases: Mapping[str, str]
    series_ids: Mapping[str, str]

    def size_key(self, spelled: str) -> str:
        """Return the key of a size in any spelling."""
        key = size_key(spelled)
        return self.aliases.get(key, key)

    def series_id(self, spelled: str) -> str:
        """Return the id of a series in any spelling; that of an unlisted one is the key that all spellings have."""
        key = series_key(spelled)
        return self.series_ids.get(key) or key or re.sub(r"[^a-z0-9]+", "_", spelled.lower()).strip("_")

    def key_of(self, fact: StatedFact) -> str:
        """Return the key of the subject of a fact."""
        match fact.kind:
            case "size":
                return self.size_key(fact.subject)
            case "series":
                return self.series_id(fact.subject)
            case _:
                return fact.subject


@dataclass(frozen=True, slots=True, order=True)
class SeriesName:
    """What a fact says of the names of a series: the series as the fact has it, the field, and its value."""

    subject: str
    field: str
    value: str


def series_names(stated: Iterable[SeriesName]) -> dict[str, str]:
    """Map every name of a series to its id, by what all facts say and not in which order.

    A series is listed where a source states its aliases: `subject` is its id then. A name that several series have
    is a listed one's, and of several the last one's by id.
    """
    names = sorted(stated)
    listed = {
        series_key(name): spelling.subject
        for spelling in names
        if spelling.field == "aliases"
        for name in (*spelling.value.split("; "), spelling.subject)
    }
    keys = SubjectKeys(aliases={}, series_ids=listed)
    named = {series_key(name.value): keys.series_id(name.subject) for name in names if name.field == "name"}
    return named | listed
