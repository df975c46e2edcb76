"""The parameters of the fit page, and the body of POST /fit that they stand for.

Parameters have the names of the body's fields, without the object that they are in: a field of `InferenceIn` or
`ConstraintsIn` that becomes a parameter here reaches the body, and its errors and fixes the form, by its name.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from app.catalog.purchases import PURCHASE_MODELS, Purchase
from app.catalog.queries.params import (
    CurrencyParams,
    JsonBool,
    LowerTextSet,
    Os,
    PlainText,
    RegionSet,
    SizeRequirements,
    UsdAmount,
)
from app.errors import BadQuery
from app.schemas.bodies import Count, Dtype, Sequences, Tokens
from app.schemas.estimate_request import Engine, InferenceIn
from app.schemas.fit_request import ConstraintsIn, FitIn, Nodes, Sort

By = Literal["model", "config", "resources"]

DEFAULT_CONTEXT = 8192
"""Tokens of context where none are given: an answer without a KV cache would be too good."""

MODEL_SORTS: Mapping[str, str] = {
    "cost_per_hour": "cost an hour",
    "cost_per_1m_tokens": "cost per million tokens",
    "time": "time per token",
    "headroom": "most memory to spare",
    "nodes": "fewest VMs",
}
RESOURCE_SORTS: Mapping[str, str] = {
    "cost_per_hour": "cost an hour",
    "headroom": "most to spare",
    "waste": "least GPU memory unused",
    "nodes": "fewest VMs",
}

_RENAMED = {"regions": "region", "purchases": "purchase"}
"""The parameters that have another name in the body."""


def _compact(text: str) -> str:
    """Return JSON without white space, so that a link can hold it; raises ValueError saying where it is no JSON."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object, as the file config.json of a model is")  # noqa: TRY004  # for pydantic
    return json.dumps(value, separators=(",", ":"))


class FitView(SizeRequirements, CurrencyParams):
    """What has to fit, and how the options are shown."""

    by: By = Field(default="model", description="What has to fit: a model by name, by its config.json, or raw needs.")
    model: PlainText | None = Field(default=None, description="A model by id, name, alias or repository.")
    config: Annotated[str, Field(max_length=100_000), AfterValidator(_compact)] | None = Field(
        default=None, description="The model by its Hugging Face `config.json`."
    )
    context_tokens: Tokens | None = Field(default=None, description="Tokens that a sequence keeps.")
    concurrency: Sequences | None = Field(default=None, description="Users, or sequences, at a time.")
    prompt_tokens: Tokens | None = Field(default=None, description="Tokens of a prompt.")
    output_tokens: Tokens | None = Field(default=None, description="Tokens that are generated for a prompt.")
    dtype: Dtype | None = Field(default=None, description="Type of the weights; default: as released.")
    kv_dtype: Dtype | None = Field(default=None, description="Type of the KV cache.")
    engine: Engine | None = Field(default=None, description="The serving engine.")
    allow_longer_context: JsonBool | None = Field(default=None, description="Allow more than the model is made for.")
    tensor_parallel: Count | None = Field(default=None, description="GPUs that a layer is cut over.")
    pipeline_parallel: Count | None = Field(default=None, description="Stages that the layers are cut into.")
    expert_parallel: Count | None = Field(default=None, description="GPUs that experts are dealt out over.")
    data_parallel_attention: Count | None = Field(default=None, description="Groups with sequences of their own.")
    region: RegionSet = Field(default=(), description="Priced in one of these.")
    gpu: LowerTextSet = Field(default=(), description="Only these GPUs, by any name or a glob.")
    series: LowerTextSet = Field(default=(), description="Only these series.")
    name: LowerTextSet = Field(default=(), description="Only names that match a glob.")
    max_nodes: Nodes = Field(default=1, description="The most VMs.")
    budget_usd_per_month: UsdAmount | None = Field(default=None, description="The most that all VMs cost a month, USD.")
    checkpoint_on_local_disk: JsonBool | None = Field(default=None, description="A checkpoint must fit on local disk.")
    require_infiniband: JsonBool | None = Field(default=None, description="VMs that work together have InfiniBand.")
    tp_in_nvlink: JsonBool | None = Field(default=None, description="Layers are cut over GPUs that share NVLink only.")
    allow_legacy: JsonBool | None = Field(default=None, description="Include GPUs for graphics and old ones.")
    allow_preview: JsonBool | None = Field(default=None, description="Include sizes in preview.")
    allow_retiring: JsonBool | None = Field(default=None, description="Include sizes that retire.")
    verified_only: JsonBool | None = Field(default=None, description="The vendor's documents must name the size.")
    purchase: Purchase = Field(default="on_demand", description="The prices that rank options and count for budgets.")
    os: Os = Field(default="linux", description="Whose prices are meant.")
    sort: Sort = Field(default="cost_per_hour", description="What the best option is.")
    limit: Annotated[int, Field(ge=1, le=500)] = Field(default=20, description="The most options to show.")

    @field_validator("sort")
    @classmethod
    def _sort_of_kind(cls, sort: Sort, about: ValidationInfo) -> Sort:
        allowed = RESOURCE_SORTS if about.data.get("by") == "resources" else MODEL_SORTS
        if sort not in allowed:
            raise PydanticCustomError("contradiction", "{detail}", {"detail": f"allowed are {', '.join(allowed)}"})
        return sort

    @property
    def asks(self) -> bool:
        """Return whether there is something to fit."""
        return bool({"model": {"model"}, "config": {"config"}}.get(self.by, _NEEDS) & self.model_fields_set)

    def given(self, shape: type[BaseModel]) -> dict[str, Any]:
        """Return the parameters that are given and are fields of an object of the body."""
        return {name: getattr(self, name) for name in shape.model_fields if name in self.model_fields_set}


_NEEDS = set(SizeRequirements.model_fields)
_ABOUT_MODELS = {"model", "config"} | (set(InferenceIn.model_fields) & set(FitView.model_fields))
_FOR_MODELS_ONLY = {"checkpoint_on_local_disk", "require_infiniband", "tp_in_nvlink", "allow_legacy"}
IGNORED: Mapping[str, set[str]] = {
    "model": {"config"} | _NEEDS,
    "config": {"model"} | _NEEDS,
    "resources": _ABOUT_MODELS | _FOR_MODELS_ONLY,
}
"""The parameters that say nothing about what has to fit, by what it is."""


def check_kind(view: FitView) -> None:
    """Raise BadQuery for a parameter that would be ignored."""
    for name in sorted(IGNORED[view.by] & view.model_fields_set):
        kinds = [kind for kind in IGNORED if name not in IGNORED[kind]]
        raise BadQuery(name, getattr(view, name), f"cannot be given with by={view.by}; it is for by={kinds[0]}")


def to_body(view: FitView, longest_context: int | None) -> dict[str, Any]:
    """Return the body of POST /fit; the context is 8,192 tokens, or the model's longest if that is less."""
    body: dict[str, Any] = {}
    if view.by == "resources":
        body["resources"] = view.given(SizeRequirements)
    else:
        body[view.by] = json.loads(view.config) if view.by == "config" and view.config else view.model
        context = min(DEFAULT_CONTEXT, longest_context or DEFAULT_CONTEXT)
        body["inference"] = {"context_tokens": context, **view.given(InferenceIn)}
    constraints = view.given(ConstraintsIn) | ({"regions": view.region} if view.region else {})
    others = [name for name in PURCHASE_MODELS if name != view.purchase]
    return body | {
        "constraints": constraints,
        "pricing": {"purchases": [view.purchase, *others], "os": view.os, "currency": view.currency},
        "sort": view.sort,
        "limit": view.limit,
    }


def read_body(body: Mapping[str, Any]) -> FitIn:
    """Return the body as POST /fit reads it, with the rejected sizes and the assumptions."""
    return FitIn.model_validate({**body, "include": ["rejected", "assumptions"]})


def param_of(path: str) -> str:
    """Return the parameter for a path in the body: `concurrency` for `inference.concurrency`, `config` for a part."""
    part, _, name = path.partition(".")
    known = part if part in ("model", "config") else name or part
    return _RENAMED.get(known, known)
