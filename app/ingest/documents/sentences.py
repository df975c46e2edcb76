"""Sentence patterns: what sentences state of every size of a page, of its rack, and of published benchmarks.

To read a new sentence about sizes, add a pattern and its rule to `_SIZE_PATTERNS`; about racks, to `_RACK_PATTERNS`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial

from app.catalog.fields import SERIES_FIELDS, FactValue
from app.catalog.names import series_key
from app.catalog.readings import BenchmarkRow, StatedFact
from app.ingest.documents.hardware import find_cpus, to_arch, to_gbps, to_model, to_vendor
from app.ingest.documents.page import Sentence, slugify
from app.ingest.documents.values import NUMBER, NUMBER_WORDS, FieldValue, find_units, normalize_rates, to_decimal

Rule = Callable[[re.Match[str], str], list[FieldValue]]
"""Turns a match and its sentence into field values."""


def _per_vm(match: re.Match[str], sentence: str, field: str = "infiniband_gbps") -> list[FieldValue]:
    units = find_units(match["rate"])
    rate = to_gbps(to_decimal(match["number"]), units[0], sentence) if units else None
    if rate is None:
        return []
    times = match.groupdict().get("times")
    note = f"{times} x {rate} Gbps" if times else None
    return [FieldValue("infiniband", True), FieldValue(field, rate * int(times or 1), note)]


_per_gpu = partial(_per_vm, field="infiniband_gbps_per_gpu")


def _nvlink_version(match: re.Match[str], _sentence: str) -> list[FieldValue]:
    return [FieldValue("nvlink", True), FieldValue("gpu_interconnect", f"NVLink {match['version']}")]


_ORDINALS = {"third": "3", "fourth": "4", "fifth": "5", "sixth": "6"}
_RATE = rf"(?P<rate>(?P<number>{NUMBER})[\s-]*(?:[GT][Bb]ps|Gbps))"

_SIZE_PATTERNS: tuple[tuple[re.Pattern[str], Rule], ...] = (
    # Every GPU has a link of its own, so the VM has as many times the rate as it has GPUs.
    (re.compile(rf"\beach GPU\b.*?{_RATE}[^.;]*?\bInfiniBand\b", re.IGNORECASE), _per_gpu),
    (re.compile(rf"{_RATE} per GPU\b[^.;]*?\bInfiniBand\b", re.IGNORECASE), _per_gpu),
    # A product of links and rate is the VM's, which such sentences say: `per VM`.
    (re.compile(rf"\b(?P<times>\d+)\s*[x×]\s*{_RATE}[^.;]*?\bInfiniBand\b[^.;]*?\bper VM\b", re.IGNORECASE), _per_vm),
    # The backend network of the VM as a whole, named by its rate and generation.
    (re.compile(rf"\bsupports?\b[^.;]*?{_RATE}\s+InfiniBand\b", re.IGNORECASE), _per_vm),
    # Versions of NVLink are kept apart because they differ in bandwidth.
    (re.compile(r"\bNVLink\s+(?P<version>\d(?:\.\d)?)\b", re.IGNORECASE), _nvlink_version),
    (
        re.compile(
            r"\b(?P<ordinal>third|fourth|fifth|sixth)[\s-]gen(?:eration)?\s+(?:NVIDIA\s+)?NVLink\b", re.IGNORECASE
        ),
        lambda match, _: [
            FieldValue("nvlink", True),
            FieldValue("gpu_interconnect", f"NVLink {_ORDINALS[match['ordinal'].lower()]}"),
        ],
    ),
    (
        re.compile(
            r"\bNVLink[\s-](?:connected|bandwidth)|\b(?:interconnected|connected) (?:with|via|by) [^.;]*?\bNVLink\b",
            re.IGNORECASE,
        ),
        lambda _found, _text: [FieldValue("nvlink", True), FieldValue("gpu_interconnect", "NVLink")],
    ),
    (
        re.compile(r"\bconnected to one another via [^.;]*?\bInfinity Fabric\b", re.IGNORECASE),
        lambda _found, _text: [FieldValue("gpu_interconnect", "Infinity Fabric")],
    ),
    (
        re.compile(
            r"^(?:This|These) (?:VM |size )?(?:sizes|series|VMs) (?:is|are) (?:currently )?in (?:public )?preview\b",
            re.IGNORECASE,
        ),
        lambda _found, _text: [FieldValue("preview", True)],
    ),
    # A remark on local disks behind it, `(NVMe drivers required for the local storage)`, leaves remote disks open.
    (
        re.compile(r"\b(?:only works?|works? only) on OS images that support NVMe\W*$", re.IGNORECASE),
        lambda _found, _text: [FieldValue("nvme_interface", True), FieldValue("scsi_interface", False)],
    ),
    (
        re.compile(r"\bsupports?\s+GPU\s?Direct RDMA\b", re.IGNORECASE),
        lambda _found, _text: [FieldValue("gpudirect_rdma", True)],
    ),
)
_COMPARISON = re.compile(
    r"\b(?:compared (?:to|with)|unlike|previous gen|earlier|predecessors?|not (?:support|available)|"
    r"doesn't|does not|over the|vs\.?)\b",
    re.IGNORECASE,
)
"""Words of a sentence that compares with other series, so that its figures may not be of this one."""


def find_sentence_fields(sentences: Iterable[Sentence]) -> Iterator[tuple[Sentence, FieldValue]]:
    """Yield what the patterns and CPU names find in the sentences that compare with no other series."""
    own = [sentence for sentence in sentences if not _COMPARISON.search(sentence.text)]
    for sentence in own:
        text = normalize_rates(sentence.text)
        for pattern, rule in _SIZE_PATTERNS:
            if match := pattern.search(text):
                yield from ((sentence, value) for value in rule(match, text))
    yield from _find_cpu(own)


def _find_cpu(sentences: Iterable[Sentence]) -> Iterator[tuple[Sentence, FieldValue]]:
    """Yield model and architecture of the CPU in its longest spelling; several as `A or B`, where a sentence says so.

    Nothing is read where a page names several CPUs in any other way.
    """
    named = [(name, sentence) for sentence in sentences for name in find_cpus(sentence.text)]
    if not named:
        return
    best, sentence = max(named, key=lambda item: len(item[0]))
    if any(not _words(name) <= _words(best) for name, _ in named):
        alternatives = [name for name, other in named if other is sentence]
        if len(alternatives) < len(named) or not _ALTERNATIVES.search(sentence.text):
            return
        best = " or ".join(alternatives)
    yield sentence, FieldValue("cpu_model", best)
    if arch := to_arch(best):
        yield sentence, FieldValue("arch", arch)


_ALTERNATIVES = re.compile(r"\b(?:runs?|running) on\b.*\bor\b")


def _words(name: str) -> set[str]:
    return set(re.sub(r"\(generation \d\)", "", name).lower().split())


_TB = rf"~?(?P<number>{NUMBER})\s*TB"
_RACK_PATTERNS: tuple[tuple[str, str, int], ...] = (
    ("rack_vms", r"\brack contains (?P<number>\d+) VMs", 1),
    ("rack_vms", r"\b(?P<number>\d+) VMs per rack", 1),
    ("rack_vms", r"\bgroups of (?P<number>\d+) [\w ]*?VMs", 1),
    ("rack_gpus", r"\brack\b.*?\((?P<number>\d+) GPUs\)", 1),
    ("rack_gpus", r"\b(?P<number>\d+) GPUs per rack|(?<=This )(?P<other>\d+)[- ]GPU rack", 1),
    ("scale_up_domain_gpus", r"\brack\b.*?\((?P<number>\d+) GPUs\),? using NVLINK", 1),
    ("scale_up_domain_gpus", r"\bNVL\d+ connects up to (?P<number>\d+) GPUs", 1),
    # A VM's share of NVLink is stated in the same words as the rack's.
    ("rack_nvlink_tb_per_s", rf"^(?=.*rack).*?(?<![\d.,]){_TB}\s*/\s*s(?:ec)?\b[^,;]*?\bNVLINK\b(?!.* per VM\b)", 1),
    ("rack_fast_memory_tb", rf"{_TB} (?:of )?fast memory", 1),
    ("rack_hbm_tb", rf"{_TB} (?:of )?(?:shared )?(?:HBM\w*|high bandwidth memory)", 1),
    ("rack_lpddr_tb", rf"{_TB} (?:of )?(?:LPDDR\w*|CPU memory)", 1),
    ("rack_fp4_pflops", rf"(?P<number>{NUMBER}) PFLOPS (?:of )?FP4", 1),
    ("rack_fp4_pflops", rf"(?P<number>{NUMBER}) exa-?FLOPS (?:of )?FP4", 1000),
)
"""Field of a rack, the pattern that states it, and the factor to the field's unit."""
_EACH_VM = re.compile(r"\bEach (?:[\w ]+ )?VM\b[^.]*?:?\s*(?:is powered by\s+|has\s+|:\s*)", re.IGNORECASE)
_CPUS = re.compile(r"\b(?P<count>\d+|one|two|four|eight) (?P<name>(?:NVIDIA|AMD|Intel) [A-Z]\w+) CPUs?\b")
_GPUS = re.compile(r"\b(?P<count>\d+|one|two|four|eight) (?P<name>(?:(?:NVIDIA|AMD) )?[A-Z]\w*(?: [A-Z]\w*)*) GPUs?\b")
_TOKENS = re.compile(
    rf"(?P<number>{NUMBER})\s*(?P<scale>million|thousand|k|M)?\s+tokens\s*(?:/|"
    rf"per )\s*s(?:ec(?:ond)?)?\b.*?\bfor\s+(?P<workload>[A-Z][\w .-]*?)\s*(?:\((?P<comparison>[^)]*)\)|[.,;]|$)"
)
_SCALES = {"million": 10**6, "m": 10**6, "thousand": 1000, "k": 1000}


def find_rack_facts(sentences: Iterable[Sentence], series: str) -> Iterator[StatedFact]:
    """Yield the facts of a series' rack."""
    for sentence in sentences:
        for field, pattern, factor in _RACK_PATTERNS:
            if match := re.search(pattern, sentence.text, re.IGNORECASE):
                number = to_decimal(next(text for text in match.groups() if text)) * factor
                value: FactValue = int(number) if SERIES_FIELDS[field].kind == "integer" else number
                yield sentence.page.series_fact(series, field, value, sentence.raw, sentence.line)


def find_vm_facts(sentences: Iterable[Sentence], subject: str) -> Iterator[StatedFact]:
    """Yield the CPU and GPU facts of an announced series from sentences that begin `Each VM`."""
    for sentence in sentences:
        start = _EACH_VM.search(sentence.text)
        if not start:
            continue
        text = sentence.text[start.start() :]
        for field, value in _vm_fields(text):
            yield sentence.page.size_fact(subject, field, value, sentence.raw, sentence.line)


def _vm_fields(text: str) -> Iterator[tuple[str, FactValue]]:
    if cpus := _CPUS.search(text):
        yield "cpu_count", _count(cpus["count"])
        yield "cpu_model", cpus["name"].replace("Nvidia", "NVIDIA")
        if arch := to_arch(cpus["name"]):
            yield "arch", arch
    for gpus in _GPUS.finditer(text):
        if model := to_model(gpus["name"]):
            yield "gpu_count", Fraction(_count(gpus["count"]))
            yield "gpu_model", model
            if vendor := to_vendor(gpus["name"]):
                yield "gpu_vendor", vendor
            return


def find_benchmarks(sentences: Iterable[Sentence], series: str) -> Iterator[BenchmarkRow]:
    """Yield published results in tokens per second; they are of the rack if the page describes one, else of a VM."""
    listed = list(sentences)
    scope = "rack" if any(re.search(r"\brack\b", item.text, re.IGNORECASE) for item in listed) else "vm"
    for sentence in listed:
        if match := _TOKENS.search(sentence.text):
            workload = match["workload"].strip()
            yield BenchmarkRow(
                id=slugify(f"{series_key(series)} {workload} tokens per second"),
                series=series,
                scope=scope,
                workload=workload,
                metric="throughput",
                value=Decimal(to_decimal(match["number"]) * _SCALES.get((match["scale"] or "").lower(), 1)).normalize()
                + 0,
                unit="tokens/s",
                comparison=match["comparison"],
                source=sentence.page.source.id,
                file=sentence.page.file,
                line=sentence.line,
            )


def _count(word: str) -> int:
    return NUMBER_WORDS.get(word.lower()) or int(word)
