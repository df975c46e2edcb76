"""Finds the fields and figures that the source of a package names, and looks them up in the dataclasses they are of."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel

from app.fit.estimator.workload import Gpus, InferenceWorkload, ServiceLevel, Speculation, TrainingWorkload
from app.fit.formulas.architecture import Architecture
from app.fit.placement.prepare import Constraints, PlacementRequest, Pricing
from app.fit.results import Estimate
from app.settings import PROJECT

WORKLOADS = {"inference": InferenceWorkload, "training": TrainingWorkload}
FIT_PARTS: dict[str, type] = {
    "": PlacementRequest,
    **WORKLOADS,
    "inference.speculative": Speculation,
    "architecture": Architecture,
    "gpus": Gpus,
    "serving": ServiceLevel,
    "constraints": Constraints,
    "pricing": Pricing,
}
"""The dataclass of each part of a name; a name without a dot is a part, or a field of the whole request."""

COMPONENTS = {"training.compute.attention_flops": "training.compute"}
"""What is left out of several figures without being one, and the figures that it is left out of."""

FIELD_ARGUMENTS = {"InvalidWorkload": 0, "MemoryUnknown": 0, "BadWorkload": 0, "record": 0, "raise_missing": 0}
FIGURE_ARGUMENTS = {"mark_missing": 0, "raise_missing": 1}
"""The position of the argument that is a field, or a figure, by the name of what is called."""

_NAME = re.compile(r"(?<![\w.*])(?:[a-z_]\w*|\*)(?:\.(?:[a-z_]\w*|\*))+(?![\w*])")
_CHECKPOINT_READERS = {
    "architecture.py", "hf_encoders.py", "hf_families.py", "hf_hybrids.py", "hf_layers.py", "hf_quantization.py",
    "quantization.py", "weight_matrices.py",
}  # fmt: skip
"""Modules that also name matrices of checkpoints; only names that begin with a part are fields there."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names in a source: as the argument that is a field or a figure, as a whole string, and inside a text.

    `*` stands for a placeholder of an f-string.
    """

    fields: frozenset[str]
    figures: frozenset[str]
    whole: frozenset[str]
    in_texts: frozenset[str]

    @property
    def all_fields(self) -> frozenset[str]:
        """Every name but those of figures."""
        return frozenset(
            name for name in self.fields | self.whole | self.in_texts if name in self.fields or not is_figure(name)
        )


def names_in(*sources: str) -> Names:
    """Return the names in sources of Python."""
    trees = [ast.parse(source) for source in sources]
    strings = [text for tree in trees for text in _strings(tree)]
    calls = [call for tree in trees for call in ast.walk(tree) if isinstance(call, ast.Call)]
    return Names(
        fields=frozenset(_arguments(calls, FIELD_ARGUMENTS)),
        figures=frozenset(_arguments(calls, FIGURE_ARGUMENTS)),
        whole=frozenset(text for text in strings if _NAME.fullmatch(text)),
        in_texts=frozenset(name for text in strings if not _NAME.fullmatch(text) for name in _NAME.findall(text)),
    )


def names_in_package(package: str, parts: Mapping[str, type]) -> Names:
    """Return the names in the modules of a package of `app`."""
    modules = sorted((PROJECT / "app" / package).rglob("*.py"))
    assert modules
    own, readers = (
        names_in(*(path.read_text() for path in modules if (path.name in _CHECKPOINT_READERS) is reads))
        for reads in (False, True)
    )
    known = tuple(f"{part}." for part in (*parts, "config") if part)
    return Names(
        fields=own.fields | {name for name in readers.fields if name.startswith(known)},
        figures=own.figures | readers.figures,
        whole=own.whole | {name for name in readers.whole if name.startswith(known)},
        in_texts=own.in_texts | {name for name in readers.in_texts if name.startswith(known)},
    )


def is_field(name: str, parts: Mapping[str, type]) -> bool:
    """Return whether a name is a part, or a field of the dataclass of a part; `config` may have any field."""
    part, dot, field = name.rpartition(".") if not name.startswith("config.") else ("config", ".", name)
    if part == "config" or (not dot and name in parts):
        return True
    if part == "*":
        return all(field in _field_names(workload) for workload in WORKLOADS.values())
    return part in parts and field in {*_field_names(parts[part]), *(("*",) if part == "architecture" else ())}


def is_figure(name: str) -> bool:
    """Return whether a name leads through the dataclasses of an Estimate to a figure, or to a part with figures."""
    kinds: list[type] = [Estimate]
    for step in COMPONENTS.get(name, name).split("."):
        hints: dict[str, Any] = {
            key: hint
            for kind in kinds
            for key, hint in get_type_hints(kind, localns={"Architecture": Architecture}).items()
        }
        if step not in hints:
            return False
        kinds = [
            kind for kind in (hints[step], *get_args(hints[step])) if is_dataclass(kind) and isinstance(kind, type)
        ]
    return True


def _field_names(kind: type) -> set[str]:
    if issubclass(kind, BaseModel):
        return set(kind.model_fields)
    assert is_dataclass(kind)
    return {field.name for field in fields(kind)}


def _strings(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a source that are not documentation."""
    nodes = list(ast.walk(tree))
    skipped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    skipped |= {id(value) for node in nodes if isinstance(node, ast.JoinedStr) for value in node.values}
    texts = (_text(node) for node in nodes if id(node) not in skipped)
    yield from (text for text in texts if text is not None)


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(value.value) if isinstance(value, ast.Constant) else "*" for value in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _arguments(calls: list[ast.Call], positions: Mapping[str, int]) -> Iterator[str]:
    for call in calls:
        called = ast.unparse(call.func).rpartition(".")[2]
        if called in positions:
            text = _text(call.args[positions[called]])
            if text is not None:
                yield text
