"""Announcements: the rack that a series' VMs share, what each VM has, and the benchmark results they publish."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction

from app.catalog.fields import SERIES_FIELDS, FactValue
from app.catalog.names import series_key
from app.catalog.readings import BenchmarkRow, StatedFact
from app.ingest.documents.cpu import to_arch
from app.ingest.documents.gpu_text import to_model, to_vendor
from app.ingest.documents.sentences import Sentence
from app.ingest.documents.values import NUMBER, to_decimal

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
"""What a rack has, by the words that state it, and the factor to the field's unit."""
_EACH_VM = re.compile(r"\bEach (?:[\w ]+ )?VM\b[^.]*?:?\s*(?:is powered by\s+|has\s+|:\s*)", re.IGNORECASE)
_CPUS = re.compile(r"\b(?P<count>\d+|one|two|four|eight) (?P<name>(?:NVIDIA|AMD|Intel) [A-Z]\w+) CPUs?\b")
_GPUS = re.compile(r"\b(?P<count>\d+|one|two|four|eight) (?P<name>(?:(?:NVIDIA|AMD) )?[A-Z]\w*(?: [A-Z]\w*)*) GPUs?\b")
_TOKENS = re.compile(
    rf"(?P<number>{NUMBER})\s*(?P<scale>million|thousand|k|M)?\s+tokens\s*(?:/|"
    rf"per )\s*s(?:ec(?:ond)?)?\b.*?\bfor\s+(?P<workload>[A-Z][\w .-]*?)\s*(?:\((?P<comparison>[^)]*)\)|[.,;]|$)"
)
_SCALES = {"million": 10**6, "m": 10**6, "thousand": 1000, "k": 1000}
_NUMBER_WORDS = {"one": 1, "two": 2, "four": 4, "eight": 8}


def find_rack_facts(sentences: Iterable[Sentence], series: str) -> Iterator[StatedFact]:
    """State what a series' rack has, from sentences and list items."""
    for sentence in sentences:
        for field, pattern, factor in _RACK_PATTERNS:
            if found := re.search(pattern, sentence.text, re.IGNORECASE):
                number = to_decimal(next(text for text in found.groups() if text)) * factor
                value: FactValue = int(number) if SERIES_FIELDS[field].kind == "integer" else number
                yield sentence.page.series_fact(series, field, value, sentence.raw, sentence.line)


def find_vm_facts(sentences: Iterable[Sentence], subject: str) -> Iterator[StatedFact]:
    """State what every VM of an announced series has, where a sentence says `Each VM`."""
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
    """Give the published results: tokens a second of a named workload; of the rack where the page describes one."""
    listed = list(sentences)
    scope = "rack" if any(re.search(r"\brack\b", item.text, re.IGNORECASE) for item in listed) else "vm"
    for sentence in listed:
        if found := _TOKENS.search(sentence.text):
            workload = found["workload"].strip()
            yield BenchmarkRow(
                id=_slug(f"{series_key(series)} {workload} tokens per second"),
                series=series,
                scope=scope,
                workload=workload,
                metric="throughput",
                value=Decimal(to_decimal(found["number"]) * _SCALES.get((found["scale"] or "").lower(), 1)).normalize()
                + 0,
                unit="tokens/s",
                comparison=found["comparison"],
                source=sentence.page.source.id,
                file=sentence.page.file,
                line=sentence.line,
            )


def _count(word: str) -> int:
    return _NUMBER_WORDS.get(word.lower()) or int(word)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
