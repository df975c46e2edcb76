"""CPU names in one spelling, and the architecture that the text states or the name implies."""

import re

_ARCHITECTURES = (
    (re.compile(r"\b(?:x86[-_]64|x64|amd64)\b", re.IGNORECASE), "x64"),
    (re.compile(r"\b(?:arm64|aarch64)\b", re.IGNORECASE), "arm64"),
    # These product lines are made for one architecture only; a page that names them has named it.
    (re.compile(r"\b(?:Xeon|EPYC|Granite Rapids)\b", re.IGNORECASE), "x64"),
    (re.compile(r"\b(?:Grace|Ampere Altra|Cobalt \d+)\b"), "arm64"),
)
_ORDINALS = {"second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6}
_GENERATION = r"(?:(?P<gen>\d(?:st|nd|rd|th)|second|third|fourth|fifth|sixth)[\s-]*gen(?:eration)?\s+)?"
_NAMES = re.compile(
    rf"{_GENERATION}(?P<maker>Intel|AMD|NVIDIA)®?\s+(?P<line>Xeon|EPYC|Grace)(?:\s*[®™])?"
    r"(?P<model>(?:\s+(?:Platinum|Gold|Silver|Scalable|E\d-\d{4}\w?|v\d|\d[\w]*\d\w*|F(?=\s*\()))*)"
    r"(?:\s*(?P<code>\([A-Z][\w -]*\)|Genoa|Milan|Rome|Naples|Bergamo|Turin|Skylake|Cascade Lake|"
    r"Ice Lake|Sapphire Rapids|"
    r"Emerald Rapids|Granite Rapids(?:-AP)?))?",
    re.IGNORECASE,
)


def to_cpu(text: str) -> dict[str, str]:
    """Return `cpu_model` and `arch` of a specs cell, as far as it states them."""
    found = {"arch": arch} if (arch := to_arch(text)) else {}
    bare = re.sub(r"[®™]|\((?:R|TM)\)|(?<=Intel)@", "", re.sub(r"\[[^\]]*\]", "", text), flags=re.IGNORECASE)
    bare = re.sub(r",?\s*up to\b.*|\b(?:CPUs?|processors?)\b", "", bare, flags=re.IGNORECASE)
    name = _normalize_name(bare)
    return {"cpu_model": name, **found} if re.search(r"[A-Za-z]{3}", name) and not _is_arch(name) else found


def to_cpus(text: str) -> dict[str, str]:
    """Return `cpu_model` and `arch` of a cell with a line for each CPU that a VM may run on: `A or B`.

    Lines that name no CPU are ignored; the architecture is left out if the CPUs have different ones.
    """
    found = [cpu for line in text.split("\v") if (cpu := to_cpu(line.strip())) and (len(cpu) > 1 or to_arch(line))]
    found = found or [to_cpu(text.split("\v", maxsplit=1)[0].strip())]
    models = dict.fromkeys(cpu["cpu_model"] for cpu in found if "cpu_model" in cpu)
    architectures = {cpu["arch"] for cpu in found if "arch" in cpu}
    values = {"cpu_model": " or ".join(models)} if models else {}
    return values | ({"arch": architectures.pop()} if len(architectures) == 1 else {})


def to_arch(text: str) -> str | None:
    """Return the architecture that a text states or implies by a product line."""
    return next((arch for pattern, arch in _ARCHITECTURES if pattern.search(text)), None)


def find_cpus(text: str) -> list[str]:
    """Return the CPUs that a sentence names, such as `Intel Xeon Platinum 8168 (Skylake)`."""
    return list(dict.fromkeys(_to_name(found) for found in _NAMES.finditer(re.sub(r"\s+", " ", text))))


def _to_name(found: re.Match[str]) -> str:
    code = (found["code"] or "").strip("() ")
    name = _normalize_name(" ".join(part for part in (found["maker"], found["line"], found["model"].strip()) if part))
    if code:
        return f"{name} ({code})"
    gen = found["gen"]
    number = _ORDINALS.get((gen or "").lower()) or (gen or "")[:1]
    return f"{name} (generation {number})" if gen and not re.search(r"\d", name) else name


def _normalize_name(text: str) -> str:
    text = re.sub(r"\bnvidia\b", "NVIDIA", re.sub(r"\bepyc\b", "EPYC", text, flags=re.IGNORECASE), flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", re.sub(r"(?<=\w)\(", " (", text)).strip(" ,;")


def _is_arch(text: str) -> bool:
    return bool(re.fullmatch(r"(?:x86[-_]64|x64|amd64|arm64|aarch64)", text, re.IGNORECASE))
