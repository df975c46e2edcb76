"""The GPUs that a page's sentences name: model, vendor, memory of one, and the count where it is that of every VM."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from app.ingest.documents.gpu_text import to_model, to_vendor
from app.ingest.documents.sentences import Sentence
from app.ingest.documents.values import NUMBER, to_decimal

_NUMBERS = {"one": 1, "two": 2, "four": 4, "eight": 8, "sixteen": 16}
_MODEL = (
    r"(?:(?:Tesla|Ampere|Hopper|Radeon(?:™|\(tm\))?|Instinct|PRO|Pro|RTX|GeForce|Quadro|[A-Z]{1,3}\d{1,4}[A-Z]{0,2}|\d{4}|PCIe|NVL|SXM\d?|Blackwell|"
    r"Ultra|Server|Edition)\s+)*"
    r"(?:[A-Z]{1,3}\d{1,4}[A-Z]{0,2}|\d{4}|PCIe|NVL|Blackwell|Ultra|Edition)"
)
_MENTION = re.compile(
    rf"(?:\b(?P<upto>up to\s+)?(?P<count>\d{{1,2}}|{'|'.join(_NUMBERS)})\s+)?(?P<vendor>NVIDIA|Nvidia|"
    rf"AMD)\s+(?P<model>{_MODEL})"
    rf"(?P<rest>(?:\s+{NUMBER}\s*GB)?(?:\s+(?:NVLINK[ -](?:inter)?connected|Tensor[ -]Core|NVL\d+))*"
    r"\s+(?:GPUs?|cards?)\b)"
)
_EACH = re.compile(
    rf"\b(?:each\s+(?:with|featuring)\s+|with\s+|featuring\s+)({NUMBER})[\s-]*GI?B\b[^.;]*?\bmemory\b", re.IGNORECASE
)
_BESIDE = re.compile(rf"({NUMBER})\s*GB\b")
_THIS_VM = re.compile(
    r"\bper VM\b|\beach\b.*\bVMs?\b|\bsingle (?:virtual machine|VM)\b|\bpowered by\b|\bfeatures?\b|\bstarts with\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:compared (?:to|with)|over the|unlike|previous gen|per rack|rack[\s-]?scale|migrat\w*|alternatives?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A GPU as a sentence names it; `count` only where it is exact and of one VM."""

    sentence: Sentence
    vendor: str
    model: str
    count: Fraction | None
    memory_gib: Decimal | None


def find_mentions(sentences: Iterable[Sentence]) -> Iterator[Mention]:
    """Find the GPUs in the sentences that speak of this series only, and name one model only."""
    for sentence in sentences:
        text = sentence.text.replace("®", "").replace("™", "")
        if _OTHERS.search(text):
            continue
        for found in _MENTION.finditer(text):
            vendor, model = to_vendor(found["vendor"]), to_model(found["model"])
            if vendor and model and not re.search(r"\b(?:or|and)\s+[A-Z]\w*\d+\s", found["rest"]):
                yield Mention(
                    sentence=sentence,
                    vendor=vendor,
                    model=model,
                    count=_count(found, text),
                    memory_gib=_memory(found, text),
                )


def only_model(mentions: Iterable[Mention]) -> Mention | None:
    """Give the mention that names the model of a page: the only one, or the only one that is counted."""
    listed = list(mentions)
    counted = [mention for mention in listed if mention.count is not None]
    for some in (listed, counted):
        if some and len({mention.model for mention in some}) == 1:
            return some[0]
    return None


def _count(found: re.Match[str], text: str) -> Fraction | None:
    if not found["count"] or found["upto"] or not _THIS_VM.search(text):
        return None
    word = found["count"].lower()
    return Fraction(_NUMBERS.get(word) or int(word))


def _memory(found: re.Match[str], text: str) -> Decimal | None:
    if beside := _BESIDE.search(found["rest"]):
        return to_decimal(beside[1])
    each = _EACH.search(text, found.end())
    return to_decimal(each[1]) if each else None
