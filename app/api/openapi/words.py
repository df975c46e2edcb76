"""The words that a request may use, as enumerations with a name: generators make one type of each."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from app.api.schemas.architecture import AttentionKind, MlpKind, QkNormKind
from app.api.schemas.estimate_request import ActivationFormula, Loading, Offload, Recompute, TrainingMethod
from app.api.schemas.fit_body import Include, Sort
from app.catalog.queries.fit_params import FitSort, ResourceInclude
from app.catalog.queries.params import Arch, Os, Purchase, Status
from app.fit.formulas.memory import BITS
from app.fit.formulas.optimizer import MODULES, RECIPES

ENUMS: Mapping[str, tuple[str, ...]] = {
    "Os": get_args(Os),
    "Purchase": get_args(Purchase),
    "Arch": get_args(Arch),
    "SizeStatus": get_args(Status),
    "FitSort": get_args(Sort),
    "FitInclude": get_args(Include),
    "ResourceSort": get_args(FitSort),
    "ResourceInclude": get_args(ResourceInclude),
    "Dtype": tuple(BITS),
    "Attention": get_args(AttentionKind),
    "Mlp": get_args(MlpKind),
    "QkNorm": get_args(QkNormKind),
    "TrainingMethod": get_args(TrainingMethod),
    "Recipe": tuple(RECIPES),
    "Offload": get_args(Offload),
    "Loading": get_args(Loading),
    "LoraModule": tuple(MODULES),
    "Recompute": get_args(Recompute),
    "ActivationFormula": get_args(ActivationFormula),
}
"""What each set of words is called. Two sets of the same words are one type."""


def enum_name(words: Iterable[str]) -> str:
    """Name a set of words; raises LookupError for one that has no name yet."""
    asked = list(words)
    for name, known in ENUMS.items():
        if sorted(known) == sorted(asked):
            return name
    raise LookupError(f"The words {asked} of a request have no name: give them one in app/api/openapi/words.py.")


def to_enum(name: str) -> dict[str, Any]:
    """The component of an enumeration.

    `x-enum-varnames` gives each member a name that no other enumeration has: Go has one room for all of them.
    """
    words = ENUMS[name]
    return {"type": "string", "enum": list(words), "x-enum-varnames": [_member(name, word) for word in words]}


def _member(name: str, word: str) -> str:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return f"{spaced}_{word}".upper()
