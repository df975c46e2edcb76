"""What a question calls a GPU, or its maker, brought to the names of the catalog; what is not there is refused."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Gpu, Size
from app.catalog.queries.lookups import gpu_words
from app.errors import BadQuery
from app.nearest import TWO_TYPOS_LENGTH, closest_spellings, did_you_mean

_IDLE = frozenset(
    ("nvidia", "amd", "intel", "tesla", "instinct", "radeon", "geforce", "gpu", "tensor", "core", "accelerator")
) | {"hbm2", "hbm2e", "hbm3", "hbm3e", "gddr6", "gddr7", "lpddr5x"}
"""Words that vendors and drivers put into names, and that tell no two GPUs of the catalog apart."""


@dataclass(frozen=True)
class GpuNames:
    """The GPUs of the catalog: what a filter compares with, the words of each, and their makers."""

    names: frozenset[str]
    words: Mapping[str, frozenset[str]]
    vendors: tuple[str, ...]

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """All words of all GPUs."""
        return frozenset(word for words in self.words.values() for word in words)


def load_gpu_names(session: Session) -> GpuNames:
    """Read what GPUs and sizes call them: a size may name a model that has no row of its own."""
    gpu, size = table_of(Gpu), table_of(Size).c
    rows = [dict(row) for row in session.execute(select(gpu).order_by(gpu.c.id)).mappings()]
    told = session.execute(select(size.gpu_model, size.gpu_vendor).distinct()).all()
    called = [*(row[column] for row in rows for column in ("id", "model", "family")), *(model for model, _ in told)]
    makers = {maker for maker in (*(row["vendor"] for row in rows), *(maker for _, maker in told)) if maker}
    return GpuNames(
        names=frozenset(name.lower() for name in called if name),
        words={row["id"]: frozenset(_steady(word) for word in gpu_words(row)) for row in rows},
        vendors=tuple(sorted(makers)),
    )


def resolve_gpus(known: GpuNames, names: Iterable[str], field: str = "gpu") -> tuple[str, ...]:
    """Bring names of GPUs to globs that the filter takes: a name of the catalog, or a glob on one, stays as it is.

    Another spelling becomes the ids of all GPUs that have its words: `NVIDIA A100 80GB` those of any A100 with 80 GB.
    Raises BadQuestion, naming the nearest, for what no GPU of the catalog is called.
    """
    found = dict.fromkeys(glob for name in names for glob in _globs(known, name.strip().lower(), field))
    return tuple(sorted(found))


def check_gpu_vendor(known: GpuNames, vendor: str) -> None:
    """Refuse a maker of no GPU of the catalog; raises BadQuestion naming the nearest."""
    if vendor.lower() not in {maker.lower() for maker in known.vendors}:
        hint = did_you_mean(closest_spellings(vendor, known.vendors), " ")
        raise BadQuery("gpu_vendor", vendor, f"{hint}allowed are {', '.join(known.vendors) or 'none'}")


def _globs(known: GpuNames, name: str, field: str) -> Sequence[str]:
    if name in known.names or (_is_glob(name) and any(_pattern(name).fullmatch(one) for one in known.names)):
        return (name,)
    words = [] if _is_glob(name) else _words_of(known, name)
    tells = [word for word in words if not word.isdigit()]
    meant = [id_ for id_, has in known.words.items() if tells and has.issuperset(words)]
    if not meant:
        hint = did_you_mean(_nearest(known, name, tells), " ")
        raise BadQuery(field, name, f"no GPU of the catalog is called {name}; {hint}GET /gpus lists them")
    return meant


def _nearest(known: GpuNames, name: str, tells: Sequence[str]) -> Sequence[str]:
    """GPUs with the word that tells most, of letters and digits; else a slip that leaves every digit.

    Short names are no slips of each other: a B100 is no A100.
    """
    if name in (maker.lower() for maker in known.vendors):
        return (f"gpu_vendor={name}",)
    models = [word for word in tells if re.search(r"[a-z]\d|\d[a-z]", word)]
    alike = [id_ for id_, has in known.words.items() if any(word in has for word in models)]
    digits = re.sub(r"\D", "", name)
    near = closest_spellings(name, known.names, 2) if len(name) >= TWO_TYPOS_LENGTH else ()
    return alike[:3] or [one for one in near if re.sub(r"\D", "", one) == digits]


def _is_glob(name: str) -> bool:
    return "*" in name or "?" in name


def _pattern(glob: str) -> re.Pattern[str]:
    """The same as LIKE makes of it: no other character means anything."""
    return re.compile("".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in glob), re.DOTALL)


def _words_of(known: GpuNames, name: str) -> list[str]:
    """The words of a name that tell something; what is written together is taken apart where the parts are known."""
    words = [_steady(word) for word in re.findall(r"[a-z0-9]+", name)]
    return [part for word in words if word not in _IDLE for part in _parts(word, known.vocabulary)]


def _parts(word: str, vocabulary: frozenset[str]) -> Sequence[str]:
    """`h100nvl` is h100 and nvl; a word whose parts are not all known stays whole."""
    if word in vocabulary or word.isdigit():
        return (word,)
    for cut in range(len(word) - 1, 1, -1):
        rest = _parts(word[cut:], vocabulary) if word[:cut] in vocabulary else ()
        if rest and all(part in vocabulary for part in rest):
            return (word[:cut], *rest)
    return (word,)


def _steady(word: str) -> str:
    """A word without what is written differently: the unit of a memory, the generation of a socket."""
    return re.sub(r"^(sxm)\d?$", r"\1", re.sub(r"(?<=\d)gi?b$", "", word))
