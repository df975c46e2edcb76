"""What is asked of a placement: a model and its use, what the sizes must be, and whose prices count."""

from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any

from app.fit.estimator.workload import InferenceWorkload, TrainingWorkload
from app.fit.formulas.architecture import Architecture
from app.fit.placement.layouts import SearchLimits
from app.fit.vm import SizeConstraints


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What an option must be; every field has the name that it has in a request."""

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
    checkpoint_on_local_disk: bool = True
    budget_usd_per_month: Decimal | None = None
    budget_usd_per_job: Decimal | None = None
    max_hours: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """Whose prices count: the purchase models, of which the first one ranks; how long VMs run; the day."""

    purchases: tuple[str, ...] = ("on_demand", "spot")
    hours: Decimal | None = None
    hours_per_month: Decimal = Decimal(730)
    spot_overhead: Decimal = Decimal("0.1")
    today: date

    @property
    def purchase(self) -> str:
        """The purchase model that options are ranked by, and that budgets are about."""
        return self.purchases[0]


Workload = InferenceWorkload | TrainingWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """The whole question; `unmeasured` where it is about one machine whose memory is not said."""

    architecture: Architecture
    workload: Workload
    constraints: Constraints = field(default_factory=Constraints)
    pricing: Pricing
    memory_unknown: bool = False

    def with_change(self, part: str, name: str, value: Any) -> "PlacementRequest":
        """The question with one field of its workload or of its constraints changed."""
        if part == "constraints":
            return replace(self, constraints=replace(self.constraints, **{name: value}))
        return replace(self, workload=replace(self.workload, **{name: value}))

    @property
    def limits(self) -> SearchLimits:
        """The bounds of the search: VMs that train together must be joined by InfiniBand unless that is waived."""
        asked = self.constraints
        needed = asked.require_infiniband
        return SearchLimits(
            min_nodes=asked.min_nodes,
            max_nodes=asked.max_nodes,
            tp_in_nvlink=asked.tp_in_nvlink,
            require_infiniband=isinstance(self.workload, TrainingWorkload) if needed is None else needed,
        )

    @property
    def terms(self) -> SizeConstraints:
        """What is asked of any size."""
        asked = self.constraints
        left_out = {"preview": asked.allow_preview, "retiring": asked.allow_retiring}
        return SizeConstraints(
            statuses=frozenset({"current", *(status for status, allowed in left_out.items() if allowed)}),
            regions=asked.regions,
            max_nodes=asked.max_nodes,
            purchase=self.pricing.purchase,
            hours=self.pricing.hours,
            hours_per_month=self.pricing.hours_per_month,
            budget_usd_per_month=asked.budget_usd_per_month,
            verified_only=asked.verified_only,
            today=self.pricing.today,
        )
