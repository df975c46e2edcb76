"""Whether a page's accelerators are GPUs: its columns count accelerators of any kind, some of which are FPGAs."""

import re
from collections.abc import Sequence
from pathlib import PurePath

from app.ingest.documents.gpu_cells import Host
from app.ingest.documents.gpu_memory import GpuMemories
from app.ingest.documents.gpu_text import to_gpu_text
from app.ingest.documents.page import Document
from app.ingest.documents.sentences import Sentence
from app.ingest.documents.sizes import Tables
from app.ingest.documents.units import spelled

_OTHER = re.compile(r"\b(?:FPGAs?|VPUs?|NPUs?|TPUs?|ASICs?)\b", re.IGNORECASE)
_GPU = re.compile(r"\bGPUs?\b|\bgraphics\b", re.IGNORECASE)
_SPECS = re.compile(r"spec|summary", re.IGNORECASE)
_ADVICE = re.compile(r"\bmigrat\w*|\balternatives?\b|\binstead\b|\breplacements?\b", re.IGNORECASE)


def no_gpus(
    document: Document, tables: Tables, host: Host, sentences: Sequence[Sentence], memories: GpuMemories
) -> str | None:
    """Say why the accelerators of a page are not taken for GPUs; None where they are.

    A page that says beside its columns that accelerators can be something else must name a GPU somewhere: in a
    header, a row, the host specifications, its title or a sentence of its own. The advice where to migrate is none. Of
    a page whose specifications are in a file that is not there, nobody can tell, and its columns are read.
    """
    if not tables.specs.has_gpus:
        return "has accelerators that are no GPUs, nothing is kept of them"
    pieces = [
        piece for row in tables.rows for piece in row.pieces if piece.part.field in ("gpu", "gpu_model", "gpu_memory")
    ]
    captions = [sentence for sentence in sentences if _OTHER.search(sentence.text)]
    if not pieces or not captions or _lacks_specs(document) or _names_gpu(tables, host, memories):
        return None
    own = [item.text for item in sentences if item not in captions and not is_advice(item)]
    own += [passage.text for _, passage in document.passages() if passage.kind == "heading"]
    if any(_GPU.search(text) for text in own):
        return None
    return "counts accelerators and does not say that they are GPUs, nothing is kept of them"


def is_advice(sentence: Sentence) -> bool:
    """Say whether a sentence speaks of what to use in place of these sizes."""
    return bool(_ADVICE.search(sentence.text))


def _lacks_specs(document: Document) -> bool:
    there = {PurePath(page.file).name for page in document.included}
    targets = {PurePath(include.target).name for page in document.pages for include in page.blocks.includes}
    return any(_SPECS.search(target) for target in targets - there)


def _names_gpu(tables: Tables, host: Host, memories: GpuMemories) -> bool:
    if host.specs.model or host.specs.vendor or host.prose_models or memories.find_in_title(host.title):
        return True
    for row in tables.rows:
        for piece in row.pieces:
            if piece.part.field in ("gpu", "gpu_model", "gpu_memory") and _GPU.search(piece.header):
                return True
            text = to_gpu_text(spelled(piece.text)) if piece.part.field in ("gpu", "gpu_model") else None
            if text and (text.model or text.vendor):
                return True
    return False
