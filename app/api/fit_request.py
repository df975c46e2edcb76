"""The wire of a question of fit in a body: resources or a model and its use, what sizes must be, whose prices count."""

from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from app.api.estimate_fields import exactly_one, refuse
from app.api.estimate_models import ModelIn
from app.api.estimate_schemas import InferenceIn, TrainingIn, to_use
from app.api.fit_request_parts import ConstraintsIn, HardwareIn, PricingIn, ResourcesIn
from app.catalog.ask.search import SizeScope
from app.fit.place.question import Constraints, Pricing
from app.placing.asking import PlacementSearch
from app.placing.hardware import Hardware
from app.recommend import FitSearch

Sort = Literal["cost_per_hour", "cost_per_job", "cost_per_1m_tokens", "time", "headroom", "waste", "nodes"]
Include = Literal["rejected", "assumptions", "workload"]


class FitIn(ModelIn):
    """A question of fit: exactly one of resources, inference and training."""

    resources: ResourcesIn | None = Field(default=None, description="Raw amounts.")
    inference: InferenceIn | None = Field(default=None, description="How the model is served.")
    training: TrainingIn | None = Field(default=None, description="How the model is trained.")
    hardware: HardwareIn | None = Field(default=None, description="One machine, in place of the catalog.")
    constraints: ConstraintsIn = Field(default=ConstraintsIn(), description="What an option must be.")
    pricing: PricingIn = Field(default=PricingIn(), description="Which prices count, and for how many hours.")
    sort: Sort = Field(default="cost_per_hour", description="What the best option is; unknown prices come last.")
    limit: Annotated[int, Field(ge=1, le=500)] = Field(default=10, description="Options to give at most.")
    include: Annotated[tuple[Include, ...], AfterValidator(lambda names: tuple(sorted(set(names))))] = Field(
        default=(), description="`rejected`: every size that does not fit; `assumptions`; `workload`: as understood."
    )

    @model_validator(mode="after")
    def _one_use(self) -> Self:
        exactly_one(self, "resources", "inference", "training")
        if self.resources is not None:
            _resources_alone(self)
        elif self.sort == "waste":
            raise refuse("sort=waste is of resources")
        if self.hardware is not None and {"regions", "available_in"} & self.constraints.model_fields_set:
            raise refuse("constraints.regions are of the catalog, and hardware is judged in its place")
        return self

    def to_search(self, today: date) -> FitSearch | PlacementSearch:
        """Leave the wire: a search for resources, or a placement."""
        return _fit_search(self) if self.resources is not None else _placement_search(self, today)


_OF_RESOURCES = {
    *("series", "name", "gpu", "gpu_vendor", "regions", "available_in", "max_nodes", "allow_preview"),
    *("allow_retiring", "verified_only", "budget_usd_per_month"),
}
"""Constraints that hold for raw amounts, too."""


def _resources_alone(body: FitIn) -> None:
    """Refuse what is about models where resources are asked for."""
    beside = {name for name in ("model", "architecture", "config", "hardware") if getattr(body, name) is not None}
    beside |= {f"constraints.{name}" for name in body.constraints.model_fields_set - _OF_RESOURCES}
    if beside:
        raise refuse(f"{', '.join(sorted(beside))} cannot be given with resources")
    if body.sort in {"cost_per_1m_tokens", "time"}:
        raise refuse(f"sort={body.sort} is of inference and training")
    if body.sort == "cost_per_job" and body.pricing.hours is None:
        raise refuse("sort=cost_per_job needs pricing.hours")


_SCOPE = ("series", "name", "gpu", "gpu_vendor")


def _scope(body: FitIn) -> dict[str, Any]:
    """Which sizes are asked about, and whose prices, as every search of the catalog says it."""
    asked, pricing = body.constraints, body.pricing
    given = {name: getattr(asked, name) for name in _SCOPE if name in asked.model_fields_set}
    places = {"region": asked.regions, "available_in": asked.available_in}
    return given | places | {"os": pricing.os, "purchase": pricing.purchases[0]}


def _fit_search(body: FitIn) -> FitSearch:
    asked, pricing = body.constraints, body.pricing
    statuses = {"preview": asked.allow_preview, "retiring": asked.allow_retiring}
    return FitSearch(
        **_scope(body),
        **(body.resources.model_dump(exclude_none=True) if body.resources is not None else {}),
        status=("current", *(status for status, allowed in statuses.items() if allowed)),
        max_nodes=asked.max_nodes,
        hours=pricing.hours,
        hours_per_month=pricing.hours_per_month,
        budget_usd_per_month=asked.budget_usd_per_month,
        sort=body.sort,
        limit=body.limit,
    )


def _placement_search(body: FitIn, today: date) -> PlacementSearch:
    asked, pricing = body.constraints, body.pricing
    binding = asked.model_dump(exclude={*_SCOPE, "available_in"})
    return PlacementSearch(
        model=body.model,
        architecture=body.fields,
        config=body.config,
        use=to_use(body.inference, body.training),
        scope=SizeScope(**_scope(body)),
        hardware=Hardware(**body.hardware.model_dump()) if body.hardware is not None else None,
        constraints=Constraints(**binding),
        pricing=Pricing(**pricing.model_dump(exclude={"os", "as_of"}), today=today),
        priced_on=pricing.as_of,
        sort=body.sort,
    )
