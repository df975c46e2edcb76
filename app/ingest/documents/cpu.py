"""CPU names in one spelling, and the architecture that the text states or the name implies."""

import re

_ARCHITECTURES = (
    (re.compile(r"\b(?:x86[-_]64|x64|amd64)\b", re.IGNORECASE), "x64"),
    (re.compile(r"\b(?:arm64|aarch64)\b", re.IGNORECASE), "arm64"),
    # These product lines are made for one architecture only; a page that names them has named it.
    (re.compile(r"\b(?:Xeon|EPYC|Granite Rapids)\b", re.IGNORECASE), "x64"),
    (re.compile(r"\b(?:Grace|Ampere Altra|Cobalt \d+)\b"), "arm64"),
)
_ORDINALS = {"second": "2", "third": "3", "fourth": "4", "fifth": "5", "sixth": "6"}
_GENERATION = rf"(?P<gen>\d(?=st|nd|rd|th)|{'|'.join(_ORDINALS)})(?:st|nd|rd|th)?[\s-]*gen(?:eration)?\b"
_GENERATION_WORDS = re.compile(_GENERATION, re.IGNORECASE)
_MARKS = re.compile(r"[®™\"“”]|\((?:R|TM)\)|\bTM\b|(?<=EPYC)TM\b|(?<=Intel)@|(?<=AMD)['\u2019]s\b", re.IGNORECASE)
_CLOCK = re.compile(r"\s*\b\d+(?:\.\d+)?\s*GHz\b", re.IGNORECASE)
_NAMES = re.compile(
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
    bare = _CLOCK.sub("", _MARKS.sub("", re.sub(r"\[[^\]]*\]", "", text)))
    bare = re.sub(r",?\s*up to\b.*|\b(?:CPUs?|processors?)\b", "", bare, flags=re.IGNORECASE)
    generation = _GENERATION_WORDS.search(bare)
    name = _with_generation(_normalize_name(_GENERATION_WORDS.sub("", bare)), generation and generation["gen"])
    return {"cpu_model": name, **arch_only} if re.search(r"[A-Za-z]{3}", name) and not _is_arch(name) else arch_only


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
    bare = re.sub(r"\s+", " ", _CLOCK.sub("", _MARKS.sub("", text)))
    return list(dict.fromkeys(_to_name(match) for match in _NAMES.finditer(bare)))


def _to_name(match: re.Match[str]) -> str:
    code = (match["code"] or "").strip("() ")
    name = _normalize_name(" ".join(part for part in (match["maker"], match["line"], match["model"].strip()) if part))
    return f"{name} ({code})" if code else _with_generation(name, match["gen"] or match["later"])


def _with_generation(name: str, generation: str | None) -> str:
    """Append the generation to a name with neither a model number nor a code name, which tell it themselves."""
    if generation is None or re.search(r"\(|\d\w*\d", name):
        return name
    return f"{name} (generation {_ORDINALS.get(generation.lower(), generation)})"


def _normalize_name(text: str) -> str:
    text = re.sub(r"\bnvidia\b", "NVIDIA", re.sub(r"\bepyc\b", "EPYC", text, flags=re.IGNORECASE), flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", re.sub(r"(?<=\w)\(", " (", text)).strip(" ,;")


def _is_arch(text: str) -> bool:
    return bool(re.fullmatch(r"(?:x86[-_]64|x64|amd64|arm64|aarch64)", text, re.IGNORECASE))
