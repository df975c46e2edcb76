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
    PRICED_OS,
    ContinentSet,
    CountrySet,
    GpuSet,
    JsonBool,
    LowerTextSet,
    Os,
    PlainText,
    ProviderSet,
    QueryParams,
    RegionSet,
    SizeRequirements,
    UsdAmount,
)
from app.errors import BadQuery
from app.fit.formulas.optimizer import Offload
from app.fit.verdict import MAX_REJECTED
from app.schemas.bodies import Count, Dtype, KvDtype, NonNegative, Positive, Sequences, Tokens
from app.schemas.fit_request import (
    ConstraintsIn,
    Engine,
    FitIn,
    InferenceIn,
    Nodes,
    Precision,
    Rate,
    Recompute,
    ServingIn,
    Sort,
    TrainingIn,
    TrainingMethod,
)
from app.validation import check_encodable
from app.web.sizes_view import ShownCurrency

By = Literal["model", "config", "resources"]
Use = Literal["context", "service", "training"]

MODEL_SORTS: Mapping[str, str] = {
    "cost_per_hour": "cost an hour",
    "cost_per_1m_tokens": "cost per million tokens",
    "time": "time per token",
    "headroom": "most memory to spare",
    "nodes": "fewest VMs",
}
TRAINING_SORTS: Mapping[str, str] = {"cost_per_job": "cost of a job", **MODEL_SORTS, "time": "hours"}
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
        check_encodable(value)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object, as the file config.json of a model is")  # noqa: TRY004  # for pydantic
    return json.dumps(value, separators=(",", ":"))


class ServiceParams(QueryParams):
    """The load of a service and its targets: what `ServingIn` has, but for `output_tokens` and `disaggregated`."""

    input_tokens: Tokens | None = Field(default=None, description="Tokens of a prompt.")
    requests_per_second: Rate | None = Field(default=None, description="Requests a second, on average.")
    requests_per_day: Rate | None = Field(default=None, description="Requests a day, on average.")
    users: Sequences | None = Field(default=None, description="Users on average, each with one request at a time.")
    think_time_s: Annotated[NonNegative, Field(le=1e6)] | None = Field(
        default=None, description="What a user waits after an answer, s."
    )
    ttft_ms: Positive | None = Field(default=None, description="The longest time to the first token, ms.")
    tpot_ms: Positive | None = Field(default=None, description="The longest time per token after the first, ms.")
    prefix_cache_hit: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        default=None, description="Share of a prompt that is cached."
    )
    peak_to_mean: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] | None = Field(
        default=None, description="Load of the busiest time over the average."
    )


class TrainingParams(QueryParams):
    """How a model is trained: the fields of `TrainingIn` that most people set, and the limits of a job."""

    method: TrainingMethod | None = Field(default=None, description="All weights, or adapters.")
    tokens: Positive | None = Field(default=None, description="Tokens that are trained on, all epochs together.")
    sequence_tokens: Tokens | None = Field(default=None, description="Tokens of a sequence.")
    micro_batch: Count | None = Field(default=None, description="Sequences that pass at a time on a GPU.")
    global_batch: Sequences | None = Field(default=None, description="Sequences of one step on all GPUs.")
    recompute: Recompute | None = Field(default=None, description="Activations that are recomputed.")
    precision: Precision | None = Field(default=None, description="Type of the layers' matrix products.")
    zero_stage: int | None = Field(default=None, ge=0, le=3, description="0 DDP to 3 FULL_SHARD.")
    offload: Offload | None = Field(default=None, description="What is kept in the host's memory.")
    max_hours: Positive | None = Field(default=None, description="The longest that training may take, hours.")
    budget_usd_per_job: UsdAmount | None = Field(default=None, description="The most that the job may cost, USD.")


class FitView(ServiceParams, TrainingParams, SizeRequirements, ShownCurrency):
    """What has to fit, and how the options are shown."""

    by: By = Field(default="model", description="What has to fit: a model by name, by its config.json, or raw needs.")
    use: Use = Field(
        default="context", description="What the model is for: users at a time, a service level, or training."
    )
    model: PlainText | None = Field(default=None, description="A model by id, name, alias or repository.")
    config: Annotated[str, Field(max_length=100_000), AfterValidator(_compact)] | None = Field(
        default=None, description="The model by its Hugging Face `config.json`."
    )
    context_tokens: Tokens | None = Field(default=None, description="Tokens that a sequence keeps.")
    concurrency: Sequences | None = Field(default=None, description="Users, or sequences, at a time.")
    prompt_tokens: Tokens | None = Field(default=None, description="Tokens of a prompt.")
    output_tokens: Tokens | None = Field(default=None, description="Tokens that are generated for a prompt.")
    dtype: Dtype | None = Field(default=None, description="Type of the weights; default: as released.")
    kv_dtype: KvDtype | None = Field(default=None, description="Type of the KV cache.")
    engine: Engine | None = Field(default=None, description="The serving engine.")
    allow_longer_context: JsonBool | None = Field(default=None, description="Allow more than the model is made for.")
    tensor_parallel: Count | None = Field(default=None, description="GPUs that a layer is split over.")
    pipeline_parallel: Count | None = Field(default=None, description="Stages that the layers are cut into.")
    expert_parallel: Count | None = Field(default=None, description="GPUs that experts are distributed over.")
    data_parallel_attention: Count | None = Field(default=None, description="Groups with sequences of their own.")
    region: RegionSet = Field(default=(), description="Priced in one of these.")
    provider: ProviderSet = ()
    country: CountrySet = Field(default=(), description="Priced in a region in one of these countries.")
    continent: ContinentSet = Field(default=(), description="Priced in a region on one of these continents.")
    gpu: GpuSet = Field(default=(), description="Only these GPUs, by any name or a glob.")
    series: LowerTextSet = Field(default=(), description="Only these series.")
    name: LowerTextSet = Field(default=(), description="Only names that match a glob.")
    max_nodes: Nodes | None = Field(default=None, description="The most VMs; default 1, for a service level 100.")
    budget_usd_per_month: UsdAmount | None = Field(default=None, description="The most that all VMs cost a month, USD.")
    checkpoint_on_local_disk: JsonBool | None = Field(default=None, description="A checkpoint must fit on local disk.")
    require_infiniband: JsonBool | None = Field(default=None, description="VMs that work together have InfiniBand.")
    tp_in_nvlink: JsonBool | None = Field(default=None, description="Split layers only over GPUs that share NVLink.")
    allow_legacy: JsonBool | None = Field(default=None, description="Include GPUs for graphics and old ones.")
    allow_preview: JsonBool | None = Field(default=None, description="Include sizes in preview.")
    allow_retiring: JsonBool | None = Field(default=None, description="Include sizes that retire.")
    verified_only: JsonBool | None = Field(default=None, description="The vendor's documents must name the size.")
    purchase: Purchase = Field(default="on_demand", description="The prices that rank options and count for budgets.")
    os: Os = Field(default="linux", description=PRICED_OS)
    sort: Sort | None = Field(
        default=None,
        description="What the best option is; default: cost an hour, of a training whose tokens are known "
        "cost of the job.",
    )
    limit: Annotated[int, Field(ge=1, le=500)] = Field(default=20, description="The most options to show.")
    misses: Annotated[int, Field(ge=1, le=MAX_REJECTED)] = Field(
        default=3, description="The most sizes to show of each reason why sizes do not fit."
    )

    @field_validator("sort")
    @classmethod
    def _sort_of_kind(cls, sort: Sort | None, about: ValidationInfo) -> Sort | None:
        allowed = sorts_of(about.data.get("by", "model"), about.data.get("use", "context"))
        if sort is not None and sort not in allowed:
            raise PydanticCustomError("contradiction", "{detail}", {"detail": f"allowed are {', '.join(allowed)}"})
        return sort

    @property
    def order(self) -> Sort:
        """Return what the best option is."""
        timed = self.by != "resources" and self.use == "training" and self.tokens is not None
        return self.sort or ("cost_per_job" if timed else "cost_per_hour")

    @property
    def names_something(self) -> bool:
        """Return whether there is a model, or a need."""
        return bool({"model": {"model"}, "config": {"config"}}.get(self.by, _NEEDS) & self.model_fields_set)

    @property
    def asks(self) -> bool:
        """Return whether there is something to fit; of a service its load is needed, too."""
        given = self.model_fields_set
        has_load = {"input_tokens", "output_tokens"} <= given and bool(_RATES & given)
        return self.names_something and (self.by == "resources" or self.use != "service" or has_load)

    def given(self, shape: type[BaseModel]) -> dict[str, Any]:
        """Return the parameters that are given and are fields of an object of the body."""
        return {name: getattr(self, name) for name in shape.model_fields if name in self.model_fields_set}


_NEEDS = set(SizeRequirements.model_fields)
_RATES = {"requests_per_second", "requests_per_day", "users"}
_INFERENCE, _SERVING, _TRAINING = (
    set(shape.model_fields) & set(FitView.model_fields) for shape in (InferenceIn, ServingIn, TrainingIn)
)
_OF_USE: Mapping[str, set[str]] = {
    "context": _INFERENCE,
    "service": (_INFERENCE - {"concurrency", "prompt_tokens"}) | _SERVING,
    "training": set(TrainingParams.model_fields) | _TRAINING,
}
"""The parameters about a model, by what it is for."""
_OF_ANY_USE = {name for names in _OF_USE.values() for name in names}
_FOR_MODELS_ONLY = {"use", "checkpoint_on_local_disk", "require_infiniband", "tp_in_nvlink", "allow_legacy"}


def ignored(by: str, use: str) -> set[str]:
    """Return the parameters that say nothing about what has to fit, by what it is and what it is for."""
    if by == "resources":
        return {"model", "config"} | _OF_ANY_USE | _FOR_MODELS_ONLY
    return {"config" if by == "model" else "model"} | _NEEDS | (_OF_ANY_USE - _OF_USE[use])


def sorts_of(by: str, use: str) -> Mapping[str, str]:
    """Return the orders of options with their titles."""
    if by == "resources":
        return RESOURCE_SORTS
    return TRAINING_SORTS if use == "training" else MODEL_SORTS


def check_kind(view: FitView) -> None:
    """Raise BadQuery for a parameter that would be ignored, and for a second rate of requests."""
    for name in sorted(ignored(view.by, view.use) & view.model_fields_set):
        uses = [use for use in _OF_USE if name not in ignored("model", use)]
        kinds = [by for by in ("model", "config", "resources") if name not in ignored(by, view.use)]
        here, there = (f"by={view.by}", f"by={kinds[0]}") if kinds else (f"use={view.use}", f"use={uses[0]}")
        raise BadQuery(name, getattr(view, name), f"cannot be given with {here}; it is for {there}")
    rates = sorted(_RATES & view.model_fields_set)
    if len(rates) > 1:
        raise BadQuery(rates[1], getattr(view, rates[1]), f"give only one of {', '.join(rates)}")


def to_body(view: FitView) -> dict[str, Any]:
    """Return the body of POST /fit."""
    body: dict[str, Any] = {}
    if view.by == "resources":
        body["resources"] = view.given(SizeRequirements)
    else:
        body[view.by] = json.loads(view.config) if view.by == "config" and view.config else view.model
        body |= _use_of(view)
    constraints = view.given(ConstraintsIn) | ({"regions": view.region} if view.region else {})
    others = [name for name in PURCHASE_MODELS if name != view.purchase]
    currency = {"currency": view.converted_to} if view.converted_to else {}
    return body | {
        "constraints": constraints,
        "pricing": {"purchases": [view.purchase, *others], "os": view.os, **currency},
        "sort": view.order,
        "limit": view.limit,
    }


def _use_of(view: FitView) -> dict[str, Any]:
    """Return the objects of the body that say what a model is for."""
    if view.use == "training":
        return {"training": view.given(TrainingIn)}
    if view.use == "service":
        serving = view.given(ServingIn)
        inference = {name: value for name, value in view.given(InferenceIn).items() if name not in serving}
        return {"serving": serving} | ({"inference": inference} if inference else {})
    # With a number of sequences a usual context is assumed where none is given.
    return {"inference": {"concurrency": 1, **view.given(InferenceIn)}}


def read_body(body: Mapping[str, Any]) -> FitIn:
    """Return the body as POST /fit reads it, with the rejected sizes and the assumptions."""
    return FitIn.model_validate({**body, "include": ["rejected", "assumptions"]})


def param_of(path: str) -> str:
    """Return the parameter for a path in the body: `concurrency` for `inference.concurrency`, `config` for a part."""
    part, _, name = path.partition(".")
    key = part if part in ("model", "config") else name or part
    return _RENAMED.get(key, key)
