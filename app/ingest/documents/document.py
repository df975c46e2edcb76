"""Documents to facts: joins what the tables, host specifications, flags and sentences of each page state.

Specifications, sentences, footnotes, previews, retirements and NVMe disks hold for every size of a page.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import islice, takewhile
from pathlib import PurePath

from app.catalog.fields import FactValue
from app.catalog.names import series_key, size_key
from app.catalog.readings import BenchmarkRow, Reading, Report, StatedFact
from app.ingest.documents.cells import (
    LOCAL_SSD,
    NVME,
    PER_DISK,
    PER_NIC,
    read_drives,
    read_parent_sizes,
    read_scale_networks,
    read_temp_disks,
)
from app.ingest.documents.document_tables import (
    OTHER_ACCELERATOR,
    DocumentTables,
    HostFact,
    HostSpecs,
    add_infiniband_totals,
    find_network_unit,
    read_cells,
    read_tables,
    split_by_series,
)
from app.ingest.documents.features import (
    FeatureFlag,
    apply_restrictions,
    find_flag_facts,
    find_flags,
    find_restrictions,
    find_table_flags,
    flag_key,
    is_supported,
)
from app.ingest.documents.gpu_rows import GpuMemoryIndex, PageGpus, read_gpus
from app.ingest.documents.hardware import find_mentions, find_only_model, to_gpu_text
from app.ingest.documents.page import Finding, Sentence, SourceDocument
from app.ingest.documents.sentences import find_benchmarks, find_rack_facts, find_sentence_fields, find_vm_facts
from app.ingest.documents.series import (
    LIST_SEPARATOR,
    SOME_SIZES,
    SeriesTitle,
    belongs_to_series,
    find_listed,
    find_preview_title,
    find_retirement,
    find_series,
)
from app.ingest.documents.size_tables import PREVIEW_MARK, SizeRow
from app.ingest.documents.values import normalize_rates

_GPU = re.compile(r"\bGPUs?\b|\bgraphics\b", re.IGNORECASE)
_SPECS = re.compile(r"spec|summary", re.IGNORECASE)
_ABSENT_PART = r"(?P<{}>accelerators|GPUs|local (?:temp(?:orary)? )?(?:storage|disks?))"
_THESE_SIZES = r"(?:this|these)(?: VM| size)? (?:series|sizes)"
_NONE_PRESENT = re.compile(
    rf"^No {_ABSENT_PART.format('first')}(?: (?:is|are))? (?:present|available|included) in {_THESE_SIZES}\b"
    rf"|^{_THESE_SIZES} (?:does|do)(?:n\Wt| not) (?:include|have|offer) (?:any )?{_ABSENT_PART.format('last')}\b"
    rf"|^(?:the )?(?P<series>\w+)(?:[ -]series)? is without (?:an? |any )?{_ABSENT_PART.format('lacking')}\b",
    re.IGNORECASE,
)
_ABSENT: dict[str, tuple[str, FactValue]] = {
    "accelerators": ("gpu_count", Fraction(0)),
    "gpus": ("gpu_count", Fraction(0)),
    "local": ("temp_disk_gib", Decimal(0)),
}
_MIGRATION_ADVICE = re.compile(r"\bmigrat\w*|\balternatives?\b|\binstead\b|\breplacements?\b", re.IGNORECASE)


def find_non_gpu_reason(
    document: SourceDocument,
    tables: DocumentTables,
    page_gpus: PageGpus,
    sentences: Sequence[Sentence],
    memories: GpuMemoryIndex,
) -> str | None:
    """Return why the accelerators of a page are not read as GPUs, None if they are.

    A page that says that accelerators can be something else must name a GPU somewhere: in a header, a row, the host
    specifications, its title or a sentence of its own; advice on where to migrate does not count. If its host
    specifications are in an included file that is missing, the columns are read as GPUs.
    """
    cells = [
        cell for row in tables.rows for cell in row.cells if cell.column.field in ("gpu", "gpu_model", "gpu_memory")
    ]
    captions = [sentence for sentence in sentences if OTHER_ACCELERATOR.search(sentence.text)]
    if not cells or not captions or _is_specs_file_missing(document) or _names_gpu(tables, page_gpus, memories):
        return None
    own = [item.text for item in sentences if item not in captions and not is_migration_advice(item)]
    own += [passage.text for _, passage in document.passages() if passage.kind == "heading"]
    if any(_GPU.search(text) for text in own):
        return None
    return "counts accelerators without saying that they are GPUs, they are not read"


OTHER_ACCELERATORS = "says that the accelerators are not GPUs, they are not read"


def find_other_accelerators(specs: HostSpecs, sentences: Sequence[Sentence]) -> HostFact | None:
    """Return the fact of 0 GPUs of a page that says that its accelerators are of another kind, such as FPGAs.

    The host specifications say so, or a sentence does on a page none of whose own sentences names a GPU. A caption
    such as `Accelerators (GPUs, FPGAs, etc.)` names both and says neither.
    """
    if specs.other_accelerators:
        return specs.other_accelerators
    own = [sentence for sentence in sentences if not is_migration_advice(sentence)]
    others = [sentence for sentence in own if OTHER_ACCELERATOR.search(sentence.text)]
    named = [sentence for sentence in others if not _GPU.search(sentence.text)]
    if not named or any(_GPU.search(sentence.text) for sentence in own if sentence not in others):
        return None
    first = named[0]
    return HostFact(page=first.page, field="gpu_count", value=Fraction(0), raw=first.raw, line=first.line)


def find_absence_facts(
    specs: HostSpecs,
    sentences: Sequence[Sentence],
    without_gpus: HostFact | None,
    subjects: Sequence[str],
    series: SeriesTitle | None,
) -> Iterator[Finding]:
    """Yield 0 GPUs and 0 GiB of temporary disks for all sizes where the page states that they have none.

    What it says of a series by its name is read only of its own series.
    """
    stated = [*specs.absent, *([without_gpus] if without_gpus else [])]
    for sentence in sentences:
        match = _NONE_PRESENT.search(sentence.text)
        named = match and match["series"]
        if match and (not named or (series and series_key(named) == series_key(series.name))):
            part = match["first"] or match["last"] or match["lacking"]
            field, value = _ABSENT[part.split()[0].lower()]
            stated.append(HostFact(page=sentence.page, field=field, value=value, raw=sentence.raw, line=sentence.line))
    for fact in stated:
        yield from fact.page.size_facts(subjects, fact.field, fact.value, fact.raw, fact.line)


def is_migration_advice(sentence: Sentence) -> bool:
    """Return whether a sentence is about what to use instead of these sizes, by its words or the heading above it."""
    return bool(_MIGRATION_ADVICE.search(sentence.text) or _MIGRATION_ADVICE.search(sentence.heading))


def _is_specs_file_missing(document: SourceDocument) -> bool:
    there = {PurePath(page.file).name for page in document.included}
    targets = {PurePath(include.target).name for page in document.pages for include in page.blocks.includes}
    return any(_SPECS.search(target) for target in targets - there)


def _names_gpu(tables: DocumentTables, page_gpus: PageGpus, memories: GpuMemoryIndex) -> bool:
    named = page_gpus.from_specs.model or page_gpus.from_specs.vendor or page_gpus.prose_models
    if named or memories.find_in_title(page_gpus.title):
        return True
    for row in tables.rows:
        for cell in row.cells:
            if cell.column.field in ("gpu", "gpu_model", "gpu_memory") and _GPU.search(cell.header):
                return True
            text = to_gpu_text(normalize_rates(cell.text)) if cell.column.field in ("gpu", "gpu_model") else None
            if text and (text.model or text.vendor):
                return True
    return False


_RDMA = re.compile(r"(?:^|[\n\v])\s*(?P<mark>[*†‡]*)\s*RDMA[\s-]capable", re.IGNORECASE)
_GPU_VENDOR = re.compile(
    r"\b(NVIDIA|AMD)(?:®|™)?(?:\s+(?!EPYC|Epyc|Xeon|Grace)[\w()™®-]+){0,6}?\s+GPUs?\b(?!\s+driver)", re.IGNORECASE
)


RowValues = dict[tuple[str, str, str], FactValue]
"""Values of the rows of sizes by file, size and field."""


def find_host_spec_facts(
    specs: HostSpecs, subjects: Sequence[str], per_gpu_gib: dict[str, Decimal], stated: RowValues
) -> Iterator[Finding]:
    """Yield the host specifications as facts of every size, except where the size's own row states otherwise.

    `per_gpu_gib` is the memory of one GPU by size, where its row shows it.
    """
    facts = specs.facts
    if contradicted := _find_contradicted_vcpus(specs, subjects, stated):
        detail = "are of the host and not of its sizes, as the tables show; their figures are not read"
        yield contradicted.page.report(detail, contradicted.line, contradicted.field, contradicted.raw)
        facts = [fact for fact in facts if isinstance(fact.value, str)]
    for fact in facts:
        others: list[str] = []
        for subject in subjects:
            shown = stated.get((fact.page.file, subject, fact.field), fact.value)
            if fact.field == "gpu_memory_gib_per_gpu":
                shown = per_gpu_gib.get(subject, fact.value)
            if shown != fact.value:
                others.append(f"{subject} ({shown})")
                continue
            yield fact.page.size_fact(subject, fact.field, fact.value, fact.raw, fact.line)
            if fact.field == "gpu_count" and getattr(fact.value, "denominator", 1) != 1:
                yield fact.page.size_fact(subject, "gpu_fraction", str(fact.value), fact.raw, fact.line)
        if others:
            detail = f"the host specifications say {fact.value}, the tables show otherwise for {', '.join(others)}"
            yield fact.page.report(f"{detail}: not read there", fact.line, fact.field, fact.raw)


def _find_contradicted_vcpus(specs: HostSpecs, subjects: Sequence[str], stated: RowValues) -> HostFact | None:
    """Return the vCPUs of the specifications if no size has that many: they are then the host's own."""
    for fact in specs.facts:
        shown = [stated.get((fact.page.file, subject, fact.field), fact.value) for subject in subjects]
        if fact.field == "vcpus" and shown and fact.value not in shown:
            return fact
    return None


def find_gpu_sentence_facts(sentences: Sequence[Sentence], subjects: Sequence[str]) -> Iterator[Finding]:
    """Yield model and vendor of the GPU that the sentences name."""
    own = [sentence for sentence in sentences if not is_migration_advice(sentence)]
    if mention := find_only_model(find_mentions(own)):
        sentence = mention.sentence
        yield from sentence.page.size_facts(subjects, "gpu_model", mention.model, sentence.raw, sentence.line)
        yield from sentence.page.size_facts(subjects, "gpu_vendor", mention.vendor, sentence.raw, sentence.line)
        return
    vendors = [(sentence, match[1].upper()) for sentence in own for match in _GPU_VENDOR.finditer(sentence.text)]
    if len({vendor for _, vendor in vendors}) == 1:
        sentence, vendor = vendors[0]
        yield from sentence.page.size_facts(subjects, "gpu_vendor", vendor, sentence.raw, sentence.line)


def find_footnote_facts(document: SourceDocument, rows: Sequence[SizeRow]) -> Iterator[Finding]:
    """Yield InfiniBand for the sizes whose name has the mark of the footnote `RDMA capable`."""
    for page, passage in document.passages():
        if not (match := _RDMA.search(passage.text)):
            continue
        marks = set(match["mark"]) or set(passage.footnote_marks) or ({"*"} if passage.kind == "item" else set())
        for row in rows:
            if row.page.file == page.file and marks & set(row.footnote_marks):
                yield page.size_fact(row.name, "infiniband", True, passage.text.strip(), passage.line)


def find_page_preview_facts(document: SourceDocument, subjects: Sequence[str]) -> Iterator[Finding]:
    """Yield that all sizes are in preview where the title says so or the page includes the notice of it."""
    page = document.page
    title = find_preview_title(page)
    for subject in subjects:
        if title:
            yield page.size_fact(subject, "preview", True, title[0], title[1])
        for include in page.blocks.includes:
            if "preview-tag" in include.target:
                yield page.size_fact(subject, "preview", True, include.target, include.line)


def find_retirement_facts(
    sentences: Sequence[Sentence], subjects: Sequence[str], series: str | None
) -> Iterator[Finding]:
    """Yield the retirement date of the page's own sizes, or of those of them that are listed below the sentence."""
    retirement = find_retirement(sentences, series)
    if retirement is None:
        return
    sentence, day = retirement
    if SOME_SIZES.search(sentence.text):
        names = {size_key(subject): subject for subject in subjects}
        below = [later.text.split() for later in sentences[sentences.index(sentence) + 1 :]]
        lists = takewhile(lambda words: all(size_key(word) in names for word in words), below)
        subjects = [names[size_key(word)] for words in lists for word in words]
        if not subjects:
            yield sentence.page.report("retires sizes that it does not list", sentence.line, None, sentence.raw)
    yield from sentence.page.size_facts(subjects, "retirement_date", day, sentence.raw, sentence.line)


_NVME_FEATURE = "temporary local nvme disks"
_TEMP_IS_NVME = re.compile(
    r"\btemp(?:orary)? (?:disks?|storage) (?:refers? to|means?|(?:is|are)(?: presented as)?) "
    r"(?:the )?(?:raw )?(?:local )?NVMe\b",
    re.IGNORECASE,
)
_NVME_FIELDS = {"temp_disk_gib": "nvme_disk_gib", "temp_disk_count": "nvme_disk_count"}


def find_nvme_statement(document: SourceDocument, tables: DocumentTables) -> int | None:
    """Return the line on which a page says that what it calls temporary disks is local NVMe; None if it does not.

    A feature, a sentence or the host specifications say so. A page with columns of NVMe beside those of temporary disks
    has both kinds, so that nothing it says is about the latter.
    """
    if any(cell.column.field in ("nvme", "nvme_size") for row in tables.rows for cell in row.cells):
        return None
    for page in document.pages:
        flags: list[FeatureFlag] = [*find_flags(page.blocks.passages)]
        flags += [flag for table in page.blocks.tables for flag in find_table_flags(table)]
        for flag in flags:
            if flag_key(flag.name) == _NVME_FEATURE and is_supported(flag):
                return flag.line
    for sentence in document.sentences():
        if _TEMP_IS_NVME.search(sentence.text):
            return sentence.line
    return tables.specs.nvme_line


def call_nvme_by_its_name(findings: Iterable[Finding], line: int | None) -> Iterator[Finding]:
    """Yield findings whose temporary disks are NVMe disks where a page says so in `line`; none at all stays none."""
    for finding in findings:
        field = _NVME_FIELDS.get(finding.field) if line and isinstance(finding, StatedFact) and finding.value else None
        if field and isinstance(finding, StatedFact):
            notes = [finding.note] if finding.note else []
            yield replace(finding, field=field, note="; ".join([*notes, f"NVMe, as line {line} says"]))
        else:
            yield finding


_MAX_NAMED_SIZES = 5
"""Number of sizes that a report names; it counts the others."""


def merge_findings(findings: Iterable[Finding]) -> tuple[list[StatedFact], list[Report]]:
    """Return one fact for each subject, field and source, and the reports; contradictions become reports.

    The first fact wins, except that a text with more words wins over one whose words it includes. The contradictions
    of a file on one field, as of two tables of the same sizes, are one report.
    """
    kept: dict[tuple[str, str, str, str], StatedFact] = {}
    reports: dict[Report, None] = {}
    contradictions: dict[tuple[str, str], list[tuple[StatedFact, StatedFact]]] = {}
    for finding in findings:
        if isinstance(finding, Report):
            reports[finding] = None
            continue
        subject = (size_key if finding.kind == "size" else series_key)(finding.subject)
        key = (finding.kind, subject, finding.field, finding.source)
        earlier = kept.setdefault(key, finding)
        if earlier.value == finding.value:
            continue
        if isinstance(earlier.value, str) and isinstance(finding.value, str):
            words, fewer = finding.value.lower().split(), earlier.value.lower().split()
            if len(words) > len(fewer) and all(word in words for word in fewer):
                kept[key] = finding
            continue
        contradictions.setdefault((finding.file, finding.field), []).append((finding, earlier))
    return list(kept.values()), [*reports, *map(_report_contradictions, contradictions.values())]


def _report_contradictions(pairs: Sequence[tuple[StatedFact, StatedFact]]) -> Report:
    (finding, earlier), *others = pairs
    detail = f"says {finding.value} for {finding.subject}, where line {earlier.line} says {earlier.value}; that is kept"
    if lines := sorted({other.line for other, _ in others} - {finding.line}):
        detail += f", and so it is for line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    return Report(file=finding.file, line=finding.line, column=finding.field, cell=finding.raw, detail=detail)


_AT_MOST = tuple(
    (f"{less}_{unit}", f"{most}_{unit}")
    for unit in ("iops", "mbps")
    for less, most in (
        *((disk, f"{disk}_burst") for disk in ("uncached_disk", "ultra_disk", "temp_disk")),
        ("temp_disk_write", "temp_disk_read"),
        ("temp_disk_sequential_write", "temp_disk_sequential_read"),
    )
)
"""Rates of disks of which the first is at most the second: without and with burst, of writing and of reading."""


def check_rates(facts: Sequence[StatedFact]) -> tuple[list[StatedFact], list[Report]]:
    """Return the facts that can be read, and reports of rates of disks that contradict each other.

    No disk moves a megabyte at once, that is, has as many MBps as IOPS: where a page says so of a size, its columns are
    mixed up, and none of their cells is read. Of two other rates that contradict each other either may be wrong, so
    that both are kept.
    """
    rates: dict[str, dict[tuple[str, str], StatedFact]] = {}
    for fact in facts:
        if fact.field.endswith(("_iops", "_mbps")):
            rates.setdefault(fact.field, {})[fact.file, fact.subject] = fact
    reports: list[Report] = []
    swapped: set[tuple[str, str]] = set()
    for field, iops in rates.items():
        mbps = rates.get(field.removesuffix("iops") + "mbps", {}) if field.endswith("_iops") else {}
        for file, above in _find_above(mbps, iops, or_equal=True).items():
            detail = f"is not below the IOPS, {_name_sizes(above)}: the columns are mixed up, and neither is read"
            first = above[0][0]
            reports.append(Report(file=file, line=first.line, column=first.field, cell=first.raw, detail=detail))
            swapped |= {(file, field), (file, first.field)}
    for less, most in _AT_MOST:
        for file, above in _find_above(rates.get(less, {}), rates.get(most, {})).items():
            first = above[0][0]
            if not swapped & {(file, less), (file, most)}:
                detail = f"is above {most}, {_name_sizes(above)}: one of them is wrong"
                reports.append(Report(file=file, line=first.line, column=less, cell=first.raw, detail=detail))
    return [fact for fact in facts if (fact.file, fact.field) not in swapped], reports


def _find_above(
    less: Mapping[tuple[str, str], StatedFact], most: Mapping[tuple[str, str], StatedFact], *, or_equal: bool = False
) -> dict[str, list[tuple[StatedFact, StatedFact]]]:
    """Return by file the pairs of rates of a size of which the first is above the second."""
    contradictions: dict[str, list[tuple[StatedFact, StatedFact]]] = {}
    for key, fact in less.items():
        other = most.get(key)
        above = Decimal(str(fact.value)) - Decimal(str(other.value)) if other else Decimal(-1)
        if other and (above > 0 or (or_equal and above == 0)):
            contradictions.setdefault(fact.file, []).append((fact, other))
    return contradictions


def _name_sizes(pairs: Sequence[tuple[StatedFact, StatedFact]]) -> str:
    named = [f"{fact.value} and {other.value} of {fact.subject}" for fact, other in pairs[:_MAX_NAMED_SIZES]]
    return ", ".join(named) + (f" and {len(pairs) - len(named)} more" if len(pairs) > len(named) else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """The facts of a document before its sizes are assigned to series."""

    document: SourceDocument
    series: SeriesTitle | None
    subjects: tuple[str, ...]
    facts: tuple[StatedFact, ...]
    reports: tuple[Report, ...]


def read_document(document: SourceDocument, memories: GpuMemoryIndex) -> DocumentFacts:
    """Read everything that a document states of its sizes."""
    tables, sentences = read_tables(document), list(document.sentences())
    series = find_series(document.page)
    subjects = tables.subjects
    findings: list[Finding] = [*tables.findings]
    if not subjects and series:
        announced = list(find_vm_facts(sentences, series.name))
        subjects = [series.name] if announced else []
        # An announcement has no table of sizes; its facts are kept under the name of the series.
        findings += announced
    rows = [row.name for row in tables.rows] or subjects
    own_rows = [name for name in rows if series and _is_of(series, name)]
    # Sentences are about the page's series; pages such as collected notes list sizes of any series.
    own_sentences = sentences if 2 * len(own_rows) > len(rows) else []
    if own_sentences:
        subjects = [subject for subject in subjects if subject in own_rows]
    without_gpus = find_other_accelerators(tables.specs, own_sentences)
    findings += _find_row_facts(document, tables, subjects, own_sentences, memories, without_gpus=without_gpus)
    findings += _find_page_facts(document, subjects, sentences, series)
    for sentence, (field, value, note) in find_sentence_fields(own_sentences):
        findings += sentence.page.size_facts(subjects, field, value, sentence.raw, sentence.line, note)
    if without_gpus is None:
        findings += find_gpu_sentence_facts(own_sentences, subjects)
    findings += find_absence_facts(tables.specs, own_sentences, without_gpus, subjects, series)
    if not subjects and not findings:
        named = (place for place in document.passages() if re.search(r"\bStandard_[A-Z]+\d", place[1].text))
        for page, passage in islice(named, 1):
            findings.append(page.report("names sizes only in its text, where they are not read", passage.line))
    findings = [*call_nvme_by_its_name(findings, find_nvme_statement(document, tables))]
    facts, reports = merge_findings(add_infiniband_totals(findings))
    facts, contradictions = check_rates(facts)
    return DocumentFacts(
        document=document,
        series=series,
        subjects=tuple(tables.subjects or subjects),
        facts=tuple(facts),
        reports=(*reports, *contradictions),
    )


def read_series(facts: DocumentFacts, series: str) -> tuple[list[Finding], list[BenchmarkRow]]:
    """Return findings and benchmarks of the series of a document under the name `series`."""
    sentences = list(facts.document.sentences())
    findings: list[Finding] = [*find_rack_facts(sentences, series)]
    items: dict[tuple[str, str], tuple[list[str], StatedFact]] = {}
    for page, name, item, raw, line in find_listed(facts.document, sentences):
        first = page.series_fact(series, name, item, raw, line)
        listed, _ = items.setdefault((page.file, name), ([], first))
        if item.lower() not in (other.lower() for other in listed):
            listed.append(item)
    findings += [replace(first, value=LIST_SEPARATOR.join(listed)) for listed, first in items.values()]
    return findings, list(find_benchmarks(sentences, series))


def _find_row_facts(
    document: SourceDocument,
    tables: DocumentTables,
    subjects: list[str],
    sentences: list[Sentence],
    memories: GpuMemoryIndex,
    *,
    without_gpus: HostFact | None,
) -> Iterator[Finding]:
    mentions = list(find_mentions(sentence for sentence in sentences if not is_migration_advice(sentence)))
    model = find_only_model(mentions)
    page_gpus = PageGpus(
        from_specs=tables.specs.gpu,
        prose_memories=frozenset(mention.memory_gib for mention in mentions if mention.memory_gib),
        prose_models=tuple(dict.fromkeys(mention.model for mention in mentions)),
        prose_count=model.count if model else None,
        # Where no sentences apply, the sizes need not be of the series that the title names.
        title=document.page.title if sentences else "",
    )
    temp_disks = read_temp_disks(tables.rows, per_disk=document.says(PER_DISK))
    cells = [*read_cells(tables.rows, document.network_unit), *temp_disks]
    yield from cells
    per_gpu_gib: dict[str, Decimal] = {}
    if without_gpus:
        yield without_gpus.page.report(OTHER_ACCELERATORS, without_gpus.line, None, without_gpus.raw)
    elif reason := find_non_gpu_reason(document, tables, page_gpus, sentences, memories):
        yield document.page.report(reason, 1)
    else:
        findings, per_gpu_gib = read_gpus(tables.rows, page_gpus, memories)
        yield from findings
    yield from read_drives(tables.rows, NVME, tables.specs.nvme_gib)
    yield from read_drives(tables.rows, LOCAL_SSD, None)
    yield from read_parent_sizes(tables.rows)
    yield from read_scale_networks(tables.rows, per_nic=document.says(PER_NIC))
    yield from find_footnote_facts(document, tables.rows)
    for row in tables.rows:
        if PREVIEW_MARK in row.footnote_marks:
            yield row.page.size_fact(row.name, "preview", True, row.name, row.line)
    stated = {(fact.file, fact.subject, fact.field): fact.value for fact in cells if isinstance(fact, StatedFact)}
    yield from find_host_spec_facts(tables.specs, subjects, per_gpu_gib, stated)


def _find_page_facts(
    document: SourceDocument, subjects: list[str], sentences: list[Sentence], series: SeriesTitle | None
) -> Iterator[Finding]:
    restricted = {restriction.field: restriction for restriction in find_restrictions(sentences, subjects)}
    for page in document.pages:
        flags = list(find_flags(page.blocks.passages))
        flags += [flag for table in page.blocks.tables for flag in find_table_flags(table)]
        yield from apply_restrictions(find_flag_facts(page, iter(flags), subjects), restricted)
    yield from find_page_preview_facts(document, subjects)
    yield from find_retirement_facts(sentences, subjects, series.name if series else None)


def _is_of(series: SeriesTitle, subject: str) -> bool:
    return series.stated or belongs_to_series(series.name, subject)


def read_batch(documents: Sequence[SourceDocument], memories: GpuMemoryIndex) -> Reading:
    """Read documents in order of publication: the first that names a size decides its series."""
    owners: dict[str, tuple[str, str]] = {}
    findings: list[Finding] = []
    benchmarks: list[BenchmarkRow] = []
    parts = [
        replace(part, network_unit=unit)
        for whole in documents
        for unit in (find_network_unit(whole),)
        for part in split_by_series(whole)
    ]
    for document in sorted(parts, key=lambda part: (part.page.source.published_on or date.max, part.page.file)):
        facts = read_document(document, memories)
        findings += [*facts.facts, *facts.reports]
        name, owned = _assign_series(facts, owners)
        findings += owned
        # A page with tables but without sizes, such as a list of retired series, is not about one series.
        if name and (facts.subjects or not document.page.blocks.tables):
            of_series, results = read_series(facts, name)
            findings += of_series
            benchmarks += results
    merged, reports = merge_findings(findings)
    # Reversed, so that the oldest page wins where several publish the same result.
    unique = {row.id: row for row in reversed(benchmarks)}
    return Reading(facts=tuple(merged), reports=tuple(reports), benchmarks=tuple(unique.values()))


def _assign_series(facts: DocumentFacts, owners: dict[str, tuple[str, str]]) -> tuple[str | None, list[Finding]]:
    """Return the series name of a document, and the findings that assign its sizes to it.

    The name is that of an earlier document if it has already claimed all the sizes.
    """
    page, series = facts.document.page, facts.series
    if series is None:
        if facts.subjects:
            return None, [page.report("names sizes, but no series can be read from its title", 1)]
        return None, []
    fitting = [subject for subject in facts.subjects if _is_of(series, subject)]
    reports: list[Report] = []
    if others := [subject for subject in facts.subjects if subject not in fitting]:
        more = f" and {len(others) - _MAX_NAMED_SIZES} more" if len(others) > _MAX_NAMED_SIZES else ""
        detail = f"does not fit {', '.join(others[:_MAX_NAMED_SIZES])}{more}, whose series stays unknown"
        reports.append(page.report(detail, series.line, "series", series.raw))
    if facts.subjects and not fitting:
        return None, [*reports]
    assigned: list[Finding] = []
    other_owners: set[str] = set()
    for subject in fitting:
        owner, file = owners.setdefault(size_key(subject), (series.name, page.file))
        if series_key(owner) == series_key(series.name):
            assigned.append(page.size_fact(subject, "series", series.name, series.raw, series.line))
            continue
        other_owners.add(owner)
        detail = f"claims {subject} for {series.name}, which {file} already assigned to {owner}"
        reports.append(page.report(detail, series.line, None, series.raw))
    if len(other_owners) == 1 and not assigned:
        return other_owners.pop(), [*reports]
    if facts.subjects:
        assigned.append(page.series_fact(series.name, "name", series.name, series.raw, series.line))
    return series.name, [*assigned, *reports]
