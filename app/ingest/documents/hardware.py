"""CPUs, networks and GPUs in cells and sentences, in one spelling."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from app.ingest.documents.page import Sentence
from app.ingest.documents.values import (
    NUMBER,
    NUMBER_WORDS,
    Amount,
    FieldValue,
    is_blank,
    normalize_rates,
    rounded,
    to_amount,
    to_base_unit,
    to_decimal,
    to_fraction,
    to_integer,
)

_ARCHITECTURES = (
    (re.compile(r"\b(?:x86[-_]64|x64|amd64)\b", re.IGNORECASE), "x64"),
    (re.compile(r"\b(?:arm64|aarch64)\b", re.IGNORECASE), "arm64"),
    # These product lines are made for one architecture only; a page that names them has named it.
    (re.compile(r"\b(?:Xeon|EPYC|Granite Rapids)\b", re.IGNORECASE), "x64"),
    (re.compile(r"\b(?:Grace|Ampere Altra|Cobalt \d+)\b"), "arm64"),
)
_ARCH_ALONE = re.compile(r"x86[-_]64|x64|amd64|arm64|aarch64", re.IGNORECASE)
_ORDINALS = {"second": "2", "third": "3", "fourth": "4", "fifth": "5", "sixth": "6"}
_GENERATION = rf"(?P<gen>\d(?=st|nd|rd|th)|{'|'.join(_ORDINALS)})(?:st|nd|rd|th)?[\s-]*gen(?:eration)?\b"
_GENERATION_WORDS = re.compile(_GENERATION, re.IGNORECASE)
_TRADEMARKS = re.compile(r"[®™\"“”]|\((?:R|TM)\)|\bTM\b|(?<=EPYC)TM\b|(?<=Intel)@|(?<=AMD)['\u2019]s\b", re.IGNORECASE)
_CLOCK = re.compile(r"\s*\b\d+(?:\.\d+)?\s*GHz\b", re.IGNORECASE)
_CPU_NAMES = re.compile(
    rf"(?:{_GENERATION}\s+)?(?P<maker>Intel|AMD|NVIDIA)\s+(?:{_GENERATION.replace('gen>', 'later>')}\s+)?"
    r"(?P<line>Xeon|EPYC|Grace)"
    r"(?P<model>(?:\s+(?:Platinum|Gold|Silver|Scalable|E\d-\d{4}\w?|v\d|\d[\w]*\d\w*|F(?=\s*\()))*)"
    r"(?:\s*(?P<code>\([A-Z][\w -]*\)|Genoa|Milan|Rome|Naples|Bergamo|Turin|Skylake|Cascade Lake|"
    r"Ice Lake|Sapphire Rapids|"
    r"Emerald Rapids|Granite Rapids(?:-AP)?))?",
    re.IGNORECASE,
)


def to_cpu(text: str) -> dict[str, str]:
    """Return `cpu_model` and `arch` of a specs cell, as far as it states them."""
    arch_only = {"arch": arch} if (arch := to_arch(text)) else {}
    bare = _CLOCK.sub("", _TRADEMARKS.sub("", re.sub(r"\[[^\]]*\]", "", text)))
    bare = re.sub(r",?\s*up to\b.*|\b(?:CPUs?|processors?)\b", "", bare, flags=re.IGNORECASE)
    generation = _GENERATION_WORDS.search(bare)
    name = _with_generation(_normalize_name(_GENERATION_WORDS.sub("", bare)), generation and generation["gen"])
    names_cpu = re.search(r"[A-Za-z]{3}", name) and not _ARCH_ALONE.fullmatch(name)
    return {"cpu_model": name, **arch_only} if names_cpu else arch_only


def to_cpus(text: str) -> dict[str, str]:
    """Return `cpu_model` and `arch` of a cell that lists each CPU that a VM may run on: `A or B`.

    Each is on a line of its own or ends with its architecture in brackets. Lines that name no CPU are ignored; the
    architecture is left out if the CPUs have different ones.
    """
    lines = re.split(r"\v|(?<=\])\s*,", text)
    cpus = [cpu for line in lines if (cpu := to_cpu(line.strip())) and (len(cpu) > 1 or to_arch(line))]
    cpus = cpus or [to_cpu(lines[0].strip())]
    models = dict.fromkeys(cpu["cpu_model"] for cpu in cpus if "cpu_model" in cpu)
    architectures = {cpu["arch"] for cpu in cpus if "arch" in cpu}
    values = {"cpu_model": " or ".join(models)} if models else {}
    return values | ({"arch": architectures.pop()} if len(architectures) == 1 else {})


def to_arch(text: str) -> str | None:
    """Return the architecture that a text states or implies by a product line."""
    return next((arch for pattern, arch in _ARCHITECTURES if pattern.search(text)), None)


def find_cpus(text: str) -> list[str]:
    """Return the CPUs that a sentence names, such as `Intel Xeon Platinum 8168 (Skylake)`."""
    bare = re.sub(r"\s+", " ", _CLOCK.sub("", _TRADEMARKS.sub("", text)))
    return list(dict.fromkeys(_to_name(match) for match in _CPU_NAMES.finditer(bare)))


def _to_name(match: re.Match[str]) -> str:
    code = (match["code"] or "").strip("() ")
    name = _normalize_name(" ".join(part for part in (match["maker"], match["line"], match["model"].strip()) if part))
    return f"{name} ({code})" if code else _with_generation(name, match["gen"] or match["later"])


def _with_generation(name: str, generation: str | None) -> str:
    """Append the generation to a name with neither a model number nor a code name, which show it themselves."""
    if generation is None or re.search(r"\(|\d\w*\d", name):
        return name
    return f"{name} (generation {_ORDINALS.get(generation.lower(), generation)})"


def _normalize_name(text: str) -> str:
    text = re.sub(r"\bnvidia\b", "NVIDIA", re.sub(r"\bepyc\b", "EPYC", text, flags=re.IGNORECASE), flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", re.sub(r"(?<=\w)\(", " (", text)).strip(" ,;")


GENERATIONS = {"FDR": 56, "EDR": 100, "HDR": 200, "NDR": 400, "XDR": 800}
"""Gbps of one InfiniBand port (4X) by generation, from the InfiniBand Trade Association's roadmap."""

_INFINIBAND = re.compile(r"infini\s?band|\bIB\b|\brdma\b|\b[FEHNX]DR\b", re.IGNORECASE)
_YES = re.compile(r"^(?:yes|true|supported|✓|✔|y|rdma capable)\b", re.IGNORECASE)
_NO = re.compile(r"^(?:no|false|not supported|✗|✘|n)\b", re.IGNORECASE)
_NETWORK_WORDS = re.compile(
    r"\b(?:infini\s?band|ethernet|network(?:ing)?|accelerated|nvidia|mellanox|quantum-?\d?|connectx-?\d?|cx\d|[FEHNX]DR|RDMA|IB|GPUDirect|backend|total|with)\b",
    re.IGNORECASE,
)


class UnreadableCell(Exception):
    """A cell that is not understood completely; the message completes the sentence `this cell …`."""


class MissingUnit(UnreadableCell):
    """A number without a unit, in a column whose header has none."""

    def __init__(self) -> None:
        super().__init__("has no unit, neither in the header nor in the cell")


def read_network(text: str, unit: str | None) -> list[FieldValue]:
    """Return the values of a cell with one or more networks; raise UnreadableCell unless all of it is understood."""
    values: list[FieldValue] = []
    # A comma before three digits is a separator of thousands.
    for piece in re.split(r"\s*(?:[/;+]|,(?!\d{3}\b))\s*|\s+and\s+", normalize_rates(text)):
        if piece:
            values.extend(_read_network_part(piece.strip(" ()"), unit))
    return values


def read_infiniband(text: str, unit: str | None) -> list[FieldValue]:
    """Return the values of a cell about InfiniBand: whether there is any, and the Gbps of the whole VM."""
    text = normalize_rates(text).strip()
    if _NO.match(text):
        return [FieldValue("infiniband", False)]
    if _YES.match(text) and not re.search(r"\d", text):
        return [FieldValue("infiniband", True)]
    amount = _bandwidth_amount(text)
    if amount is None:
        if _INFINIBAND.search(text) and not re.search(r"\d", _NETWORK_WORDS.sub("", text)):
            return [FieldValue("infiniband", True)]
        raise UnreadableCell("does not say whether there is InfiniBand")
    gbps = _gbps(amount, text, unit)
    return [
        FieldValue("infiniband", True),
        FieldValue("infiniband_gbps", rounded(gbps * (amount.times or 1)), amount.product_note(gbps, "Gbps")),
    ]


def to_gbps(number: Decimal, unit: str, text: str) -> Decimal | None:
    """Convert to Gbps; return None for GB/s unless the InfiniBand generation in the text shows that bits are meant."""
    mbps = to_base_unit(number, unit, "network")
    if mbps is not None:
        return rounded(mbps / 1000)
    generation = next((rate for name, rate in GENERATIONS.items() if re.search(rf"\b{name}\b", text)), None)
    return number if unit == "GBps" and generation == number else None


def _read_network_part(piece: str, unit: str | None) -> list[FieldValue]:
    if _INFINIBAND.search(piece):
        return read_infiniband(piece, unit)
    # A part without digits, such as `Ethernet`, states no bandwidth.
    if is_blank(piece) or not re.search(r"\d", piece):
        if _NETWORK_WORDS.sub("", piece).strip():
            raise UnreadableCell(f"has unknown words: {piece}")
        return []
    amount = _bandwidth_amount(piece)
    stated = amount.unit(unit) if amount else None
    if amount is None or stated is None:
        raise UnreadableCell("is not one number with a unit")
    mbps = to_base_unit(amount.total, stated, "network")
    whole = None if mbps is None else to_integer(mbps)
    if whole is None:
        raise UnreadableCell(f"is in {stated}, which is not a unit of bandwidth")
    return [FieldValue("network_mbps", whole, amount.product_note(amount.number, stated))]


def _bandwidth_amount(text: str) -> Amount | None:
    digit = re.search(r"\d", text)
    amount = to_amount(text[digit.start() :]) if digit else None
    if amount is None:
        return None
    left = re.sub(r"[KMGT]i?[Bb]ps", "", _NETWORK_WORDS.sub("", text[: digit.start()] + amount.suffix if digit else ""))
    if re.search(r"\w", left):
        raise UnreadableCell("is not one number" if re.search(r"\d", left) else f"has unknown words: {left.strip()}")
    return amount


def _gbps(amount: Amount, text: str, unit: str | None) -> Decimal:
    stated = amount.unit(unit)
    gbps = None if stated is None else to_gbps(amount.number, stated, text)
    if gbps is None:
        raise UnreadableCell("has no unit of an InfiniBand bandwidth")
    return gbps


_COUNT = re.compile(
    r"^\s*(\d+\s*[/⁄]\s*\d+|[½⅓⅔¼¾⅙⅛]|\d+(?:\.\d+)?)(?:\s*[x×*]\s+|\s*[x×*](?=[A-Z\d])|\s+|$)", re.IGNORECASE
)
_COUNT_AFTER = re.compile(r"\s*\(?\s*(?:(\d+)\s*[x×]|(?<![A-Za-z\d])[x×]\s*(\d+))\s*\)?\s*$", re.IGNORECASE)
_COUNT_BEFORE = re.compile(r"^\s*\d+\s*[x×]\s", re.IGNORECASE)
_FRACTION_AFTER = re.compile(r"\s*\(\s*(\d+\s*/\s*\d+)\s*\)\s*$")
_NO_GPU = re.compile(r"^(?:0|no|none|no gpus?|cpu only)\b(?:\s*\([^()]*\))?$", re.IGNORECASE)
_PARENTHESES = re.compile(r"\((?![^()]*\b(?:PCIe|SXM\d?|NVL)\b)[^()]*\)|[,;+].*$", re.IGNORECASE)
_RANGE = re.compile(r"^[~≈]|^\d+\s*[-–]\s*\d+\b|\b\d+\s*[-–]\s*\d+\s*[x×]", re.IGNORECASE)
_MEMORY = re.compile(
    rf"\(?\s*({NUMBER})\s*-?\s*Gi?B\b(?:\s+(?:of\s+)?(?:HBM\w*|GDDR\w*|memory|vRAM|"
    rf"VRAM))*(?:\s+(?:each|per GPU))?\s*\)?",
    re.IGNORECASE,
)
_INTERCONNECT = re.compile(
    r"\(?\b(NV\s?Link|Infinity Fabric)\b[\s-]*(\d+(?:\.\d+)?)?(?:[\s-]*connected)?\s*\)?", re.IGNORECASE
)
_VENDORS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}
_VENDOR = re.compile(r"\b(NVIDIA|AMD|Intel)\b[®™]?(?:\(tm\))?", re.IGNORECASE)
_BRAND_VENDORS = {
    "tesla": "NVIDIA",
    "geforce": "NVIDIA",
    "blackwell": "NVIDIA",
    "rtx": "NVIDIA",
    "radeon": "AMD",
    "instinct": "AMD",
}
"""Vendor by brand, for texts that do not name the vendor."""
_NOISE = re.compile(
    r"®|™|\((?:tm|r)\)|\b(?:GPUs?|Tesla|Tensor[ -]Cores?|Ampere|Hopper|Volta|Turing|Pascal|Nvidia|"
    r"AMD|vRAM|cards?|accelerators?)\b"
    r"|\b\d+(?:\.\d+)?\s*Ti?B\b|\bRadeon(?=\s+Instinct\b)|\bACCELMEM\b",
    re.IGNORECASE,
)
_FILLER_WORDS = frozenset({"with", "of", "each", "and", "per", "x", "full", "whole", "single", "dedicated"})
_FORM = re.compile(r"\b(PCIe|SXM\d?|NVL)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuText:
    """The GPUs that a text describes; None for what it does not mention.

    `holder` is `gpu` or `vm` if the text says of which the memory is (`16 GB each`, `40 GB GPUs`, `64 GB total`).
    """

    count: Fraction | None = None
    vendor: str | None = None
    model: str | None = None
    memory_gib: Decimal | None = None
    holder: str | None = None
    interconnect: str | None = None


def to_gpu_text(text: str, *, counted: bool = True) -> GpuText | None:
    """Parse `8 A100 40 GB GPUs (NVLink 3.0)`, `4 x V100`, `1/6`; return None if there is neither count nor model.

    If not `counted`, a number at the start is part of the model's name.
    """
    text = text.replace("\v", " ").strip()
    if is_blank(text):
        return GpuText()
    if count := to_fraction(text) if counted or "/" in text else None:
        return GpuText(count=count)
    if counted and _NO_GPU.match(text):
        return GpuText(count=Fraction(0))
    if _RANGE.search(text):
        return None
    count, rest = _split_count(text, counted=counted or bool(_COUNT_BEFORE.match(text)))
    memory, link = _MEMORY.search(rest), _INTERCONNECT.search(rest)
    before = f"{rest[: memory.start()]} {' '.join(_FORM.findall(rest[memory.end() :]))}" if memory else ""
    bare = _MEMORY.sub(" ", _INTERCONNECT.sub(" ", rest))
    # The model is before the memory, else outside parentheses, else anywhere in the text.
    model = to_model(_INTERCONNECT.sub(" ", before)) or to_model(_PARENTHESES.sub("", bare)) or to_model(bare)
    if count is None and model is None:
        return None
    return GpuText(
        count=count,
        vendor=to_vendor(rest),
        model=model,
        memory_gib=to_decimal(memory[1]) if memory else None,
        holder=_holder(rest[memory.start() :]) if memory else None,
        interconnect=to_interconnect(link[0]) if link else None,
    )


def _holder(memory: str) -> str | None:
    if re.search(r"\beach\b|\bper GPU\b|^\(?[\d.,\s]+Gi?B\s+GPUs?\b", memory, re.IGNORECASE):
        return "gpu"
    return "vm" if re.search(r"\btotal\b|\bcombined\b", memory, re.IGNORECASE) else None


def _split_count(text: str, *, counted: bool) -> tuple[Fraction | None, str]:
    """Split off the count, which is before the model (`2 x A100`) or after it (`A100 (2x)`)."""
    if match := _COUNT.match(text) if counted else None:
        return to_fraction(match[1]), text[match.end() :]
    if match := _FRACTION_AFTER.search(text):
        return to_fraction(match[1]), text[: match.start()]
    if match := _COUNT_AFTER.search(_MEMORY.sub(" ", text)):
        return Fraction(int(match[1] or match[2])), text.replace(match[0].strip(), " ", 1)
    return None, text


def to_interconnect(text: str) -> str | None:
    """Return the interconnect of GPUs in one spelling: `NVLINK 3.0` as `NVLink 3.0`."""
    match = _INTERCONNECT.search(text)
    if not match:
        return None
    name = "NVLink" if match[1].lower().startswith("nv") else "Infinity Fabric"
    return f"{name} {match[2]}" if match[2] else name


def to_vendor(text: str) -> str | None:
    """Return the vendor by its name, else by its brand."""
    if match := _VENDOR.search(text):
        return _VENDORS[match[1].lower()]
    return next(
        (vendor for brand, vendor in _BRAND_VENDORS.items() if re.search(rf"\b{brand}\b", text, re.IGNORECASE)), None
    )


def to_model(text: str) -> str | None:
    """Return a model's name without vendor, `Tesla` and `GPU`, its form factor (PCIe, NVL) at the end.

    Return None if the text names no model, or one of two.
    """
    if re.search(r"\bor\b|/", text):
        return None
    bare = _NOISE.sub(" ", text)
    forms = [form.upper().replace("PCIE", "PCIe") for form in _FORM.findall(bare)]
    bare = re.sub(r"\bpro\b", "PRO", _FORM.sub(" ", bare), flags=re.IGNORECASE)
    words = re.sub(r"[()\[\],;*]", " ", bare).split()
    words = [word.strip("-–:") for word in words if word.lower() not in _FILLER_WORDS]
    words = [word for word in words if re.search(r"\w", word)]
    name = " ".join([*words, *dict.fromkeys(forms)])
    return name if re.search(r"[A-Za-z]", name) and (re.search(r"\d", name) or name in _MODELS_WITHOUT_DIGITS) else None


_MODELS_WITHOUT_DIGITS = frozenset({"Blackwell", "Blackwell Ultra"})
"""Models without a digit in their name."""


_MODEL = (
    r"(?:(?:Tesla|Ampere|Hopper|Radeon(?:™|\(tm\))?|Instinct|PRO|Pro|RTX|GeForce|Quadro|[A-Z]{1,3}\d{1,4}[A-Z]{0,2}|\d{4}|PCIe|NVL|SXM\d?|Blackwell|"
    r"Ultra|Server|Edition)\s+)*"
    r"(?:[A-Z]{1,3}\d{1,4}[A-Z]{0,2}|\d{4}|PCIe|NVL|Blackwell|Ultra|Edition)"
)
_MENTION = re.compile(
    rf"(?:\b(?P<upto>up to\s+)?(?P<count>\d{{1,2}}|{'|'.join(NUMBER_WORDS)})\s+)?(?P<vendor>NVIDIA|Nvidia|"
    rf"AMD)\s+(?P<model>{_MODEL})"
    rf"(?P<rest>(?:\s+{NUMBER}\s*GB)?(?:\s+(?:NVLINK[ -](?:inter)?connected|Tensor[ -]Core|NVL\d+))*"
    r"\s+(?:GPUs?|cards?)\b)"
)
_EACH_WITH_MEMORY = re.compile(
    rf"\b(?:each\s+(?:with|featuring)\s+|with\s+|featuring\s+)({NUMBER})[\s-]*GI?B\b[^.;]*?\bmemory\b", re.IGNORECASE
)
_ADJACENT_MEMORY = re.compile(rf"({NUMBER})\s*GB\b")
_THIS_VM = re.compile(
    r"\bper VM\b|\beach\b.*\bVMs?\b|\bsingle (?:virtual machine|VM)\b|\bpowered by\b|\bfeatures?\b|\bstarts with\b",
    re.IGNORECASE,
)
_COMPARISON = re.compile(
    r"\b(?:compared (?:to|with)|over the|unlike|previous gen|per rack|rack[\s-]?scale|migrat\w*|alternatives?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMention:
    """A GPU that a sentence names; `count` is None unless it is exact and of one VM."""

    sentence: Sentence
    vendor: str
    model: str
    count: Fraction | None
    memory_gib: Decimal | None


def find_mentions(sentences: Iterable[Sentence]) -> Iterator[GpuMention]:
    """Yield the GPUs in the sentences that compare with no other series and do not offer several models."""
    for sentence in sentences:
        text = sentence.text.replace("®", "").replace("™", "")
        if _COMPARISON.search(text):
            continue
        for match in _MENTION.finditer(text):
            vendor, model = to_vendor(match["vendor"]), to_model(match["model"])
            # `or A10 GPUs`, `and T4 GPUs`: the sentence offers several models.
            if vendor and model and not re.search(r"\b(?:or|and)\s+[A-Z]\w*\d+\s", match["rest"]):
                yield GpuMention(
                    sentence=sentence,
                    vendor=vendor,
                    model=model,
                    count=_count(match, text),
                    memory_gib=_memory(match, text),
                )


def find_only_model(mentions: Iterable[GpuMention]) -> GpuMention | None:
    """Return a mention of the page's model: the only model mentioned, or the only one mentioned with a count."""
    listed = list(mentions)
    counted = [mention for mention in listed if mention.count is not None]
    for some in (listed, counted):
        if some and len({mention.model for mention in some}) == 1:
            return some[0]
    return None


def _count(match: re.Match[str], text: str) -> Fraction | None:
    if not match["count"] or match["upto"] or not _THIS_VM.search(text):
        return None
    word = match["count"].lower()
    return Fraction(NUMBER_WORDS.get(word) or int(word))


def _memory(match: re.Match[str], text: str) -> Decimal | None:
    if beside := _ADJACENT_MEMORY.search(match["rest"]):
        return to_decimal(beside[1])
    stated = _EACH_WITH_MEMORY.search(text, match.end())
    return to_decimal(stated[1]) if stated else None
