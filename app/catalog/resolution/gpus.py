"""Which GPU model a page means: by its text and its memory, never by the name of a size."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NOT_PART_OF_THE_NAME = re.compile(
    r"\b(nvidia|amd|gpus?|tensor core|graphics|accelerators?|\d+ ?gi?b)\b|[®™(),]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuName:
    """What a GPU model can be recognised by; `memory_gib` is the marketed figure of one GPU."""

    id: str
    vendor: str
    model: str
    memory_gib: float | None
    aliases: frozenset[str]


def gpu_text_key(text: str) -> str:
    """Reduce a GPU's text to what tells models apart: `Nvidia PCIe A100 GPU (80GB)` is `pcie a100`."""
    return " ".join(_NOT_PART_OF_THE_NAME.sub(" ", text.lower()).split())


def find_gpu(text: str, memory_gib: float | None, gpus: Iterable[GpuName]) -> GpuName | None:
    """Find the one GPU model that the text and the memory of one GPU mean; None where it is none, or several."""
    key = gpu_text_key(text)
    named = [gpu for gpu in gpus if key in gpu.aliases]
    if memory_gib is not None:
        named = [gpu for gpu in named if gpu.memory_gib is not None and abs(gpu.memory_gib - memory_gib) < 1]
    return named[0] if len(named) == 1 else None
