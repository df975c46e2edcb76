"""What sentences say of every size of a page: a table of patterns, each with a rule that turns a match into fields."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from app.catalog.fields import FactValue
from app.ingest.documents.cpu import find_cpus, to_arch
from app.ingest.documents.network import to_gbps
from app.ingest.documents.sentences import Sentence
from app.ingest.documents.values import NUMBER, find_units, normalize_rates, to_decimal

Fields = list[tuple[str, FactValue, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceField:
    """A field that a sentence states for all sizes of its page."""

    sentence: Sentence
    field: str
    value: FactValue
    note: str | None = None


def _rate(found: re.Match[str], sentence: str) -> Decimal | None:
    units = find_units(found["rate"])
    return to_gbps(to_decimal(found["number"]), units[0], sentence) if units else None


def _per_gpu(found: re.Match[str], sentence: str) -> Fields:
    rate = _rate(found, sentence)
    return [] if rate is None else [("infiniband", True, None), ("infiniband_gbps_per_gpu", rate, None)]


def _per_vm(found: re.Match[str], sentence: str) -> Fields:
    rate = _rate(found, sentence)
    if rate is None:
        return []
    note = f"{found['times']} x {rate} Gbps"
    return [("infiniband", True, None), ("infiniband_gbps", rate * int(found["times"]), note)]


def _whole_vm(found: re.Match[str], sentence: str) -> Fields:
    rate = _rate(found, sentence)
    return [] if rate is None else [("infiniband", True, None), ("infiniband_gbps", rate, None)]


def _nvlink_version(found: re.Match[str], _sentence: str) -> Fields:
    return [("nvlink", True, None), ("gpu_interconnect", f"NVLink {found['version']}", None)]


_ORDINALS = {"third": "3", "fourth": "4", "fifth": "5", "sixth": "6"}
_RATE = rf"(?P<rate>(?P<number>{NUMBER})[\s-]*(?:[GT][Bb]ps|Gbps))"

_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Fields]], ...] = (
    # Every GPU has a link of its own, so the VM has as many times the rate as it has GPUs.
    (re.compile(rf"\beach GPU\b.*?{_RATE}[^.;]*?\bInfiniBand\b", re.IGNORECASE), _per_gpu),
    (re.compile(rf"{_RATE} per GPU\b[^.;]*?\bInfiniBand\b", re.IGNORECASE), _per_gpu),
    # A product of links and rate is the VM's, which such sentences say: `per VM`.
    (re.compile(rf"\b(?P<times>\d+)\s*[x×]\s*{_RATE}[^.;]*?\bInfiniBand\b[^.;]*?\bper VM\b", re.IGNORECASE), _per_vm),
    # The backend network of the VM as a whole, named by its rate and generation.
    (re.compile(rf"\bsupports?\b[^.;]*?{_RATE}\s+InfiniBand\b", re.IGNORECASE), _whole_vm),
    # Versions of NVLink are told apart because they differ in bandwidth.
    (re.compile(r"\bNVLink\s+(?P<version>\d(?:\.\d)?)\b", re.IGNORECASE), _nvlink_version),
    (
        re.compile(
            r"\b(?P<ordinal>third|fourth|fifth|sixth)[\s-]gen(?:eration)?\s+(?:NVIDIA\s+)?NVLink\b", re.IGNORECASE
        ),
        lambda found, _: [
            ("nvlink", True, None),
            ("gpu_interconnect", f"NVLink {_ORDINALS[found['ordinal'].lower()]}", None),
        ],
    ),
    (
        re.compile(
            r"\bNVLink[\s-](?:connected|bandwidth)|\b(?:interconnected|connected) (?:with|via|by) [^.;]*?\bNVLink\b",
            re.IGNORECASE,
        ),
        lambda _found, _text: [("nvlink", True, None), ("gpu_interconnect", "NVLink", None)],
    ),
    (
        re.compile(r"\bconnected to one another via [^.;]*?\bInfinity Fabric\b", re.IGNORECASE),
        lambda _found, _text: [("gpu_interconnect", "Infinity Fabric", None)],
    ),
    (
        re.compile(
            r"^(?:This|These) (?:VM |size )?(?:sizes|series|VMs) (?:is|are) (?:currently )?in (?:public )?preview\b"
        ),
        lambda _found, _text: [("preview", True, None)],
    ),
    (
        re.compile(r"\bsupports?\s+GPU\s?Direct RDMA\b", re.IGNORECASE),
        lambda _found, _text: [("gpudirect_rdma", True, None)],
    ),
)
_COMPARISON = re.compile(
    r"\b(?:compared (?:to|with)|unlike|previous gen|earlier|predecessors?|not (?:support|available)|"
    r"doesn't|does not|over the|vs\.?)\b",
    re.IGNORECASE,
)
"""Words of a sentence that speaks of other series too, so that its figures may not be of this one."""


def find_sentence_fields(sentences: Iterable[Sentence]) -> Iterator[SentenceField]:
    """Apply the patterns and the names of CPUs to every sentence that speaks of this series only."""
    own = [sentence for sentence in sentences if not _COMPARISON.search(sentence.text)]
    for sentence in own:
        text = normalize_rates(sentence.text)
        for pattern, rule in _PATTERNS:
            if found := pattern.search(text):
                for field, value, note in rule(found, text):
                    yield SentenceField(sentence=sentence, field=field, value=value, note=note)
    yield from _find_cpu(own)


def _find_cpu(sentences: Iterable[Sentence]) -> Iterator[SentenceField]:
    """Give the CPU of a page in the words that say most; a page that names several says nothing of its sizes."""
    named = [(name, sentence) for sentence in sentences for name in find_cpus(sentence.text)]
    if not named:
        return
    best, sentence = max(named, key=lambda item: len(item[0]))
    if any(not _words(name) <= _words(best) for name, _ in named):
        return
    yield SentenceField(sentence=sentence, field="cpu_model", value=best)
    if arch := to_arch(best):
        yield SentenceField(sentence=sentence, field="arch", value=arch)


def _words(name: str) -> set[str]:
    return set(re.sub(r"\(generation \d\)", "", name).lower().split())
