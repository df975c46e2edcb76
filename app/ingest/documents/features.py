"""Feature flags: `Premium Storage: Supported` in lines, bullets, tables and columns, and notes that restrict them.

To read a new feature, add its names to `FLAGS`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from app.catalog.names import size_key
from app.catalog.readings import StatedFact
from app.ingest.documents.hardware import UnreadableCell, read_infiniband
from app.ingest.documents.page import Finding, MarkdownTable, Passage, Sentence, SourcePage
from app.ingest.documents.values import FieldValue, normalize_rates

_LINE = re.compile(r"^\s*[-*+]?\s*(?P<name>[A-Z][\w .\-/()]{2,60}?)\s*:\s*(?P<status>\S.*?)\s*$")
_STATUS = re.compile(
    r"^(?P<no>not\s+supported|unsupported|not\s+applicable|not\s+available|no\b)"
    r"|^(?P<yes>supported|yes\b|available|required\b|(?:limited|restricted)\s+support\b)",
    re.IGNORECASE,
)
_SUPPORT = re.compile(r"(?:not\s+)?supported\b", re.IGNORECASE)
_QUALIFIED = re.compile(r"required|(?:limited|restricted)\s+support", re.IGNORECASE)
_GENERATIONS = re.compile(
    r"^generations?\s+(?P<which>[12](?:\s*(?:and|&|,|/)\s*(?:generation\s*)?[12])?)\b", re.IGNORECASE
)

_LIST_TITLE = re.compile(r"(?:un|not )?supported(?=\s+features\b)", re.IGNORECASE)
"""How a paragraph begins whose list names features without saying more of each."""
_EXCEPT = re.compile(r"\bexcept(?:ing|ion)?\b(.*)", re.IGNORECASE)

_NAMED_LIKE_FIELDS = (
    *("premium_storage", "premium_storage_caching", "premium_storage_v2", "ultra_disk", "write_accelerator"),
    *("nvme_interface", "scsi_interface", "nvme_storage", "local_temporary_storage", "ephemeral_os_disk"),
    *("trusted_launch", "live_migration", "memory_preserving_updates", "service_healing", "hibernation"),
    *("generation_1", "generation_2", "nested_virtualization", "accelerated_networking", "backend_network"),
    *("infiniband", "nvlink", "gpudirect_rdma"),
)
FLAGS: dict[str, str] = {
    **{field.replace("_", " "): field for field in _NAMED_LIKE_FIELDS},
    "premium ssd v2": "premium_storage_v2",
    "temporary local nvme disks": "local_temporary_storage",
    "constrained core": "constrained_vcpus",
    **dict.fromkeys(("ultra disks", "ultra ssd"), "ultra_disk"),
    **dict.fromkeys(("generation 1 vms", "vm generation 1", "vm generation 1 support"), "generation_1"),
    **dict.fromkeys(("generation 2 vms", "vm generation 2", "vm generation 2 support"), "generation_2"),
    **dict.fromkeys(("vm generation", "vm generation support"), "generations"),
    "ephemeral os disks": "ephemeral_os_disk",
    "vm vcore customization": "vcore_customization",
    "azure disk encryption for linux vms": "disk_encryption_linux",
    "azure disk encryption for windows vms": "disk_encryption_windows",
    "rdma": "infiniband",
    **dict.fromkeys(("nvidia nvlink interconnect", "nvlink interconnect"), "nvlink"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFlag:
    """A flag as the page writes it; `problem` is the reason why it is not read."""

    name: str
    status: str
    raw: str
    line: int
    problem: str | None = None


def find_flags(passages: tuple[Passage, ...]) -> Iterator[FeatureFlag]:
    """Yield the flags that are written in lines of paragraphs and lists, or listed below `Supported features`."""
    status = ""
    for passage in passages:
        if passage.kind != "item":
            title = _LIST_TITLE.match(passage.text)
            status = title[0] if title and passage.kind == "paragraph" else ""
        elif status and not _LINE.match(passage.text):
            name = passage.text.strip()
            yield FeatureFlag(name=name, status=status, raw=f"{status} features: {name}", line=passage.line)
            continue
        for line, text in _lines(passage):
            match = _LINE.match(text)
            if (
                match
                and passage.kind != "heading"
                and (flag_key(match["name"]) in FLAGS or _SUPPORT.match(match["status"]))
            ):
                yield FeatureFlag(name=match["name"], status=match["status"], raw=text.strip(), line=line)


def find_table_flags(table: MarkdownTable) -> Iterator[FeatureFlag]:
    """Yield the flags of a table whose second column is their status; nothing for any other table."""
    rows = [row for row in table.rows if len(row.cells) > 1 and row.cells[1].text]
    columns = [flag_key(cell.text) for cell in table.header]
    if len(columns) > 3 or re.search(r"\d", "".join(columns)):  # noqa: PLR2004  # name, status, notes; no sizes
        return
    of_features = columns[0].startswith("feature") or any(flag_key(row.cells[0].text) in FLAGS for row in rows)
    if not of_features or not any(_STATUS.match(row.cells[1].text) for row in rows):
        return
    if any(len(row.cells) > 2 and _STATUS.match(row.cells[2].text) for row in rows):  # noqa: PLR2004  # a second status
        header = " | ".join(cell.text for cell in table.header)
        problem = "are features of several series side by side, it is unknown which apply to a size"
        yield FeatureFlag(name=columns[0], status=header, raw=header, line=table.line, problem=problem)
        return
    for row in rows:
        name, status = row.cells[0].text, row.cells[1].text
        yield FeatureFlag(name=name, status=status, raw=f"{name} | {status}", line=row.line)


def read_flag(flag: FeatureFlag) -> list[FieldValue]:
    """Return the values that a flag states; raise UnreadableCell if it is not understood."""
    if flag.problem:
        raise UnreadableCell(flag.problem)
    name = FLAGS.get(flag_key(flag.name))
    if name is None:
        raise UnreadableCell("is not a known feature")
    if name == "generations":
        return _generations(flag.status)
    if name == "backend_network":
        return read_infiniband(flag.status, None)
    match = _STATUS.match(flag.status)
    if not match:
        raise UnreadableCell("is neither Supported nor Not Supported")
    value = match["yes"] is not None
    note = "in preview" if value and re.search(r"\bpreview\b", flag.status, re.IGNORECASE) else None
    if value and (qualified := _QUALIFIED.match(flag.status)):
        note = qualified[0].lower()
    return [FieldValue(name, value, note), *(_implied_fields(name, flag.status[match.end() :]) if value else [])]


def _implied_fields(name: str, rest: str) -> list[FieldValue]:
    values: list[FieldValue] = []
    if name == "nvlink":
        values.append(FieldValue("gpu_interconnect", "NVLink"))
    if re.search(r"GPU\s?Direct RDMA", rest, re.IGNORECASE):
        values.append(FieldValue("gpudirect_rdma", True))
    if name == "infiniband" and re.search(r"\d", rest):
        values.extend(item for item in _bandwidth(rest) if item.field == "infiniband_gbps")
    return values


def _bandwidth(rest: str) -> list[FieldValue]:
    for piece in re.split(r"[,;]", normalize_rates(rest)):
        if re.search(r"\d", piece):
            return [item for item in read_infiniband(piece, None) if isinstance(item.value, bool | Decimal)]
    return []


def _generations(status: str) -> list[FieldValue]:
    match = _GENERATIONS.match(status)
    if not match:
        raise UnreadableCell("names no generation")
    return [FieldValue(f"generation_{number}", str(number) in match["which"]) for number in (1, 2)]


def _lines(passage: Passage) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(passage.text.split("\n")):
        for text in line.split("\v"):
            yield passage.line + number, text


def is_supported(flag: FeatureFlag) -> bool:
    """Return whether a flag says that its feature is supported."""
    match = _STATUS.match(flag.status)
    return match is not None and match["yes"] is not None


def flag_key(name: str) -> str:
    """Return the name of a flag as words in lower case, the form of the keys of `FLAGS`, without a footnote's mark."""
    key = re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()
    return re.sub(r"(?<=[a-z]{3})[1-9]$", "", key)


def find_flag_facts(page: SourcePage, flags: Iterator[FeatureFlag], subjects: list[str]) -> Iterator[Finding]:
    """Yield a fact of every flag for every size, and one report for each flag that is not understood.

    A size that the flag excepts, as in `Supported (except for X)`, has the opposite.
    """
    for flag in flags:
        try:
            values = read_flag(flag)
            excepted = _find_excepted(flag, subjects)
        except UnreadableCell as problem:
            yield page.report(f"{problem}", flag.line, flag.name, flag.status)
            continue
        for subject in subjects:
            for name, value, note in values:
                if subject not in excepted:
                    yield page.size_fact(subject, name, value, flag.raw, flag.line, note)
                elif isinstance(value, bool):
                    yield page.size_fact(subject, name, not value, flag.raw, flag.line, "an exception")


def _find_excepted(flag: FeatureFlag, subjects: Sequence[str]) -> list[str]:
    """Return the sizes that a flag excepts; raise UnreadableCell if it excepts something else."""
    match = _EXCEPT.search(flag.status)
    if match is None:
        return []
    named = {size_key(name) for name in _SIZE.findall(match[1])}
    if not named or not named <= {size_key(subject) for subject in subjects}:
        raise UnreadableCell("makes an exception that is not understood")
    return [subject for subject in subjects if size_key(subject) in named]


_ONLY_SUPPORTED = re.compile(
    r"^(?P<name>[A-Z][\w .\-/]{2,60}?)\s+(?:is|are)\s+"
    r"(?:only\s+(?:supported|available)|(?:supported|available)\s+only)\s+(?:for|on|with|in|by)\s+(?P<rest>.+)$",
    re.IGNORECASE,
)
_SIZE = re.compile(r"\b(?:Standard_|Basic_)?[A-Za-z]+[\w\-]*\d[\w\-]*")
_SPEAKS_OF_SIZES = re.compile(r"\bsizes?\b|\bv?CPUs?\b|\bv?cores?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRestriction:
    """A feature that only the sizes with the keys `sizes` have; empty if the note describes them in other words."""

    field: str
    sizes: frozenset[str]
    sentence: Sentence


def find_restrictions(sentences: Iterable[Sentence], subjects: Sequence[str]) -> Iterator[FeatureRestriction]:
    """Yield the restrictions of features to some sizes of the page."""
    page_keys = {size_key(subject) for subject in subjects}
    for sentence in sentences:
        match = _ONLY_SUPPORTED.match(sentence.text)
        field = FLAGS.get(flag_key(match["name"])) if match else None
        if not match or field is None:
            continue
        named = frozenset(size_key(name) for name in _SIZE.findall(match["rest"])) & page_keys
        if named or _SPEAKS_OF_SIZES.search(match["rest"]):
            yield FeatureRestriction(field=field, sizes=named, sentence=sentence)


def apply_restrictions(findings: Iterable[Finding], restricted: Mapping[str, FeatureRestriction]) -> Iterator[Finding]:
    """Yield the findings with restricted features set to False for the sizes that a restriction does not name."""
    reported: set[str] = set()
    for finding in findings:
        note = restricted.get(finding.field) if isinstance(finding, StatedFact) and finding.value is True else None
        if note is None or not isinstance(finding, StatedFact) or size_key(finding.subject) in note.sizes:
            yield finding
            continue
        sentence = note.sentence
        if note.sizes:
            yield sentence.page.size_fact(finding.subject, finding.field, False, sentence.raw, sentence.line)
        elif finding.field not in reported:
            reported.add(finding.field)
            detail = f"restricts {finding.field} to sizes that are not read, the feature is read for none"
            yield sentence.page.report(detail, sentence.line, None, sentence.raw)
