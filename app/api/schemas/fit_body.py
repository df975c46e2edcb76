"""The wire of a question of fit in a body: resources or a model and its use, what sizes must be, whose prices count."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from app.api.schemas.architecture import ModelIn
from app.api.schemas.bodies import exactly_one, refuse
from app.api.schemas.estimate_request import InferenceIn, TrainingIn
from app.api.schemas.fit_request import ConstraintsIn, HardwareIn, PricingIn, ResourcesIn

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
