"""Who a statement speaks of: spellings, aliases and page titles brought to the keys the catalog knows."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.catalog.names import series_key, size_key
from app.catalog.readings import AliasRow, StatedFact

_GENERIC_WORDS = re.compile(
    r"\b(nvidia|amd|gpus?|tensor core|graphics|accelerators?|\d+ ?gi?b)\b|[®™(),]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuName:
    """What a GPU model can be recognised by; `memory_gib` is the marketed figure of one GPU."""

    id: str
    vendor: str
    model: str
    memory_gib: float | None
    aliases: frozenset[str]


def gpu_text_key(text: str) -> str:
    """Reduce a GPU's text to what tells models apart: `Nvidia PCIe A100 GPU (80GB)` is `pcie a100`."""
    return " ".join(_GENERIC_WORDS.sub(" ", text.lower()).split())


def find_gpu(text: str, memory_gib: float | None, gpus: Iterable[GpuName]) -> GpuName | None:
    """Find the one GPU model that the text and the memory of one GPU mean; None where it is none, or several."""
    key = gpu_text_key(text)
    named = [gpu for gpu in gpus if key in gpu.aliases]
    if memory_gib is not None:
        named = [gpu for gpu in named if gpu.memory_gib is not None and abs(gpu.memory_gib - memory_gib) < 1]
    return named[0] if len(named) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectKeys:
    """The keys of sizes by alias, and the ids of series by every name they go by."""

    aliases: Mapping[str, str]
    series_ids: Mapping[str, str]

    def size_key(self, spelled: str) -> str:
        """The key of a size, however it is spelled."""
        key = size_key(spelled)
        return self.aliases.get(key, key)

    def series_id(self, spelled: str) -> str:
        """The id of a series, however it is spelled; a series nobody listed gets its name as an id."""
        known = self.series_ids.get(series_key(spelled))
        return known or re.sub(r"[^a-z0-9]+", "_", spelled.lower()).strip("_")

    def key_of(self, statement: StatedFact) -> str:
        """The key of whom a statement speaks of."""
        match statement.kind:
            case "size":
                return self.size_key(statement.subject)
            case "series":
                return self.series_id(statement.subject)
            case _:
                return statement.subject


def alias_map(aliases: Iterable[AliasRow]) -> dict[str, str]:
    """Map the key of each alias to the key of the size it means."""
    return {size_key(row.alias): size_key(row.size) for row in aliases}


def series_names(statements: Iterable[StatedFact]) -> dict[str, str]:
    """Map every name of a listed series to its id; a series is listed where a source gives its aliases."""
    listed = [statement for statement in statements if statement.kind == "series" and statement.field == "aliases"]
    return {
        series_key(name): statement.subject
        for statement in listed
        for name in (statement.subject, *str(statement.value).split("; "))
    }
