"""Facts that hold for every size of a page: specifications, sentences, footnotes, preview, retirement, NVMe disks."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import takewhile
from pathlib import PurePath

from app.catalog.fields import FactValue
from app.catalog.names import series_key, size_key
from app.catalog.readings import StatedFact
from app.ingest.documents.document_tables import DocumentTables
from app.ingest.documents.features import FeatureFlag, find_flags, find_table_flags, flag_key, is_supported
from app.ingest.documents.gpu_rows import GpuMemoryIndex, PageGpus
from app.ingest.documents.hardware import find_mentions, find_only_model, to_gpu_text
from app.ingest.documents.markdown import Passage
from app.ingest.documents.page import Finding, Sentence, SourceDocument
from app.ingest.documents.sentences import find_sentence_fields
from app.ingest.documents.series import SOME_SIZES, SeriesTitle, find_preview_title, find_retirement
from app.ingest.documents.size_tables import PREVIEW_MARK, SizeRow
from app.ingest.documents.specs import OTHER_ACCELERATOR, HostFact, HostSpecs
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
    if (
        page_gpus.from_specs.model
        or page_gpus.from_specs.vendor
        or page_gpus.prose_models
        or memories.find_in_title(page_gpus.title)
    ):
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


def to_row_values(findings: Iterable[Finding]) -> RowValues:
    """Return the values of the facts, to compare a page's host specifications with its own tables."""
    return {(fact.file, fact.subject, fact.field): fact.value for fact in findings if isinstance(fact, StatedFact)}


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


def find_sentence_facts(sentences: Sequence[Sentence], subjects: Sequence[str]) -> Iterator[Finding]:
    """Yield what the sentences state of every size, except its GPUs."""
    for sentence, (field, value, note) in find_sentence_fields(sentences):
        yield from sentence.page.size_facts(subjects, field, value, sentence.raw, sentence.line, note)


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
        marks = _rdma_footnote_marks(passage)
        for row in rows if marks else ():
            if row.page.file == page.file and marks & set(row.footnote_marks):
                yield page.size_fact(row.name, "infiniband", True, passage.text.strip(), passage.line)


def find_row_preview_facts(rows: Sequence[SizeRow]) -> Iterator[Finding]:
    """Yield that a size is in preview where its name is followed by `(preview)`."""
    for row in rows:
        if PREVIEW_MARK in row.footnote_marks:
            yield row.page.size_fact(row.name, "preview", True, row.name, row.line)


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


def _rdma_footnote_marks(passage: Passage) -> set[str]:
    match = _RDMA.search(passage.text)
    if not match:
        return set()
    return set(match["mark"]) or set(passage.footnote_marks) or ({"*"} if passage.kind == "item" else set())


_NVME_FEATURE = "temporary local nvme disks"
_TEMP_IS_NVME = re.compile(
    r"\btemp(?:orary)? (?:disks?|storage) (?:refers? to|means?|is|are) (?:the )?(?:local )?NVMe\b", re.IGNORECASE
)
_NVME_FIELDS = {
    "temp_disk_gib": "nvme_disk_gib",
    "temp_disk_count": "nvme_disk_count",
}


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
