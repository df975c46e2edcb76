"""Features that a note restricts to some sizes: `Accelerated Networking is only supported for NX8 and NX16`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.catalog.names import size_key
from app.catalog.readings import Statement
from app.ingest.documents.features import FLAGS, key_of_flag
from app.ingest.documents.page import Finding
from app.ingest.documents.sentences import Sentence

_ONLY = re.compile(
    r"^(?P<name>[A-Z][\w .\-/]{2,60}?)\s+(?:is|are)\s+"
    r"(?:only\s+(?:supported|available)|(?:supported|available)\s+only)\s+(?:for|on|with|in|by)\s+(?P<rest>.+)$",
    re.IGNORECASE,
)
_SIZE = re.compile(r"\b(?:Standard_|Basic_)?[A-Za-z]+[\w\-]*\d[\w\-]*")
_OF_SIZES = re.compile(r"\bsizes?\b|\bv?CPUs?\b|\bv?cores?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """A feature of some sizes only, by their keys; no sizes where the note says which in words that are not read."""

    field: str
    sizes: frozenset[str]
    sentence: Sentence


def find_restrictions(sentences: Iterable[Sentence], subjects: Sequence[str]) -> Iterator[Restriction]:
    """Find the sentences that restrict a feature to sizes of the page."""
    keys = {size_key(subject) for subject in subjects}
    for sentence in sentences:
        found = _ONLY.match(sentence.text)
        field = FLAGS.get(key_of_flag(found["name"])) if found else None
        if not found or field is None:
            continue
        named = frozenset(size_key(name) for name in _SIZE.findall(found["rest"])) & keys
        if named or _OF_SIZES.search(found["rest"]):
            yield Restriction(field=field, sizes=named, sentence=sentence)


def restrict(findings: Iterable[Finding], restricted: Mapping[str, Restriction]) -> Iterator[Finding]:
    """Give the features of a page as its notes restrict them: the other sizes do not have what only some have."""
    told: set[str] = set()
    for found in findings:
        note = restricted.get(found.field) if isinstance(found, Statement) and found.value is True else None
        if note is None or not isinstance(found, Statement) or size_key(found.subject) in note.sizes:
            yield found
            continue
        said = note.sentence
        if note.sizes:
            yield said.page.states(found.subject, found.field, False, said.raw, said.line)
        elif found.field not in told:
            told.add(found.field)
            detail = f"restricts {found.field} to sizes that are not read, it is taken for none"
            yield said.page.report(detail, said.line, None, said.raw)
