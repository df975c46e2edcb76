"""What an option of a fit costs: apart from the arithmetic of models, which a fit of raw needs does without."""

from dataclasses import dataclass

from app.fit.formulas.interruptions import Interruptions
from app.fit.formulas.quantities import Figure
from app.fit.verdict import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFigures:
    """What an option costs by one purchase model; per request of a service only."""

    cost: Cost
    per_job: Figure | None
    per_million_tokens: Figure | None
    interruptions: Interruptions | None = None
    per_request: Figure | None = None
