"""How much memory a GPU model has, looked up by however a page writes the model."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

_NOISE = re.compile(
    r"\b(?:nvidia|amd|tesla|radeon|instinct|intel|gpus?|tensor|core|cores|card|ampere|hopper)\b", re.IGNORECASE
)
_MEMORY = re.compile(r"\b\d+\s*-?\s*GI?B\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemories:
    """The memories in GiB that each model is made with, by the words of its names, the longest names first."""

    by_words: tuple[tuple[tuple[str, ...], tuple[Decimal, ...]], ...] = ()

    @classmethod
    def of(cls, memories: Mapping[str, Sequence[int | str | Decimal]]) -> "GpuMemories":
        """Build from models and their memories: `{"V100": [16, 32]}`."""
        found: dict[tuple[str, ...], set[Decimal]] = {}
        for name, sizes in memories.items():
            if words := _words(name):
                found.setdefault(words, set()).update(Decimal(size) for size in sizes)
        ordered = sorted(found.items(), key=lambda item: (-len(item[0]), item[0]))
        return cls(by_words=tuple((words, tuple(sorted(sizes))) for words, sizes in ordered))

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, str]]) -> "GpuMemories":
        """Build from rows with `model`, `family`, `aliases` (`;` between them) and `memory_gib`."""
        memories: dict[str, list[int | str | Decimal]] = {}
        for row in rows:
            if not (size := (row.get("memory_gib") or "").strip()):
                continue
            names = [row.get("model") or "", row.get("family") or "", *(row.get("aliases") or "").split(";")]
            for name in {name.strip() for name in names} - {""}:
                memories.setdefault(name, []).append(size)
        return cls.of(memories)

    def find(self, text: str) -> tuple[Decimal, ...]:
        """Give the possible memories of the model a text names, `()` where it names none that is known."""
        words = _words(text)
        for name, sizes in self.by_words:
            if _contains(words, name):
                return sizes
        return ()

    def find_in_title(self, title: str) -> tuple[Decimal, ...]:
        """Give the possible memories of a model that stands inside a title's words, as A100 in `NDasrA100_v4`."""
        for name, sizes in self.by_words:
            if len(name) == 1 and re.search(rf"(?<![A-Z0-9]){name[0].upper()}(?![A-Za-z0-9])", title.replace("_", " ")):
                return sizes
        return ()


def _words(text: str) -> tuple[str, ...]:
    bare = _NOISE.sub(" ", _MEMORY.sub(" ", text))
    return tuple(re.findall(r"[a-z0-9]+", bare.lower()))


def _contains(words: tuple[str, ...], name: tuple[str, ...]) -> bool:
    return all(word in words for word in name)
