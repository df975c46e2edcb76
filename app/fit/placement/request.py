"""The input of a placement: a model and its workload, constraints on the sizes, and pricing."""

from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any

from app.fit.estimator.workload import InferenceWorkload, ServiceLevel, TrainingWorkload
from app.fit.formulas.architecture import Architecture
from app.fit.placement.layouts import SearchLimits
from app.fit.verdict import SizeConstraints


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Constraints on an option."""

    regions: tuple[str, ...] = ()
    min_nodes: int = 1
    max_nodes: int = 1
    utilization: float | None = None
    tp_in_nvlink: bool = False
    require_infiniband: bool | None = None
    allow_preview: bool = True
    allow_retiring: bool = True
    allow_legacy: bool = False
    verified_only: bool = False
    checkpoint_on_local_disk: bool = False
    budget_usd_per_month: Decimal | None = None
    budget_usd_per_job: Decimal | None = None
    max_hours: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """Which purchase models are priced (the first one ranks), how long the VMs run, and the day of the prices.

    `spot_overhead` is what interruptions add to a training, as a share; where it is None, it follows from evictions and
    checkpoints.
    """

    purchases: tuple[str, ...] = ("on_demand", "spot")
    hours: Decimal | None = None
    hours_per_month: Decimal = Decimal(730)
    spot_overhead: Decimal | None = None
    spot_evictions_per_hour: float | None = None
    spot_restart_minutes: float | None = None
    checkpoint_interval_minutes: float | None = None
    checkpoint_gb_per_s: float | None = None
    checkpoint_usd_per_gb_month: float | None = None
    checkpoints_kept: int | None = None
    today: date

    @property
    def purchase(self) -> str:
        """The purchase model that options are ranked by and that budgets apply to."""
        return self.purchases[0]


Workload = InferenceWorkload | TrainingWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """A placement request; `machine_described` where it is about one machine that is not of the catalog.

    `memory_unknown` where the GPU memory of that is not given.
    `serving` is the load and the targets of a service; None where the workload says its concurrency.
    """

    architecture: Architecture
    workload: Workload
    serving: ServiceLevel | None = None
    constraints: Constraints = field(default_factory=Constraints)
    pricing: Pricing
    machine_described: bool = False
    memory_unknown: bool = False

    def with_change(self, part: str, name: str, value: Any) -> "PlacementRequest":
        """Return this request with one field changed: of its constraints, its service level or else its workload."""
        if part == "constraints":
            return replace(self, constraints=replace(self.constraints, **{name: value}))
        if part == "serving" and self.serving is not None:
            return replace(self, serving=replace(self.serving, **{name: value}))
        return replace(self, workload=replace(self.workload, **{name: value}))

    @property
    def on_gpus(self) -> "PlacementRequest":
        """The request without what decides nothing about a job on GPUs: constraints on regions, statuses and costs.

        Of prices a training depends on those of spot VMs.
        """
        pricing = Pricing(today=date.min)
        if isinstance(self.workload, TrainingWorkload):
            pricing = replace(self.pricing, hours=None, hours_per_month=Decimal(0), today=date.min)
        return replace(
            self,
            constraints=replace(
                self.constraints,
                regions=(),
                allow_preview=True,
                allow_retiring=True,
                verified_only=False,
                checkpoint_on_local_disk=False,
                budget_usd_per_month=None,
                budget_usd_per_job=None,
            ),
            pricing=pricing,
        )

    @property
    def limits(self) -> SearchLimits:
        """The bounds of the search.

        Training over several VMs, and a replica of a service on several, require InfiniBand unless that is waived.
        """
        constraints, trains = self.constraints, isinstance(self.workload, TrainingWorkload)
        required = constraints.require_infiniband
        return SearchLimits(
            min_nodes=constraints.min_nodes,
            max_nodes=constraints.max_nodes,
            tp_in_nvlink=constraints.tp_in_nvlink,
            require_infiniband=trains or self.serving is not None if required is None else required,
            replicas_exchange_data=trains,
            timed=self.serving is not None,
        )

    @property
    def size_constraints(self) -> SizeConstraints:
        """The constraints that do not depend on the workload."""
        constraints = self.constraints
        orderable = {"preview": constraints.allow_preview, "retiring": constraints.allow_retiring}
        return SizeConstraints(
            statuses=frozenset({"current", *(status for status, allowed in orderable.items() if allowed)}),
            regions=constraints.regions,
            max_nodes=constraints.max_nodes,
            purchase=self.pricing.purchase,
            hours=self.pricing.hours,
            hours_per_month=self.pricing.hours_per_month,
            budget_usd_per_month=constraints.budget_usd_per_month,
            verified_only=constraints.verified_only,
            today=self.pricing.today,
        )
