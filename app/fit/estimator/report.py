"""The whole result of an estimate."""

from dataclasses import dataclass

from app.fit.formulas.architecture import Architecture
from app.fit.formulas.quantities import Assumption, OmittedFigure
from app.fit.results import CostFigures, InferenceFigures, ParameterFigures, ServiceReport, TrainingFigures, WeightsType


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The whole result; `architecture` is the model as it was completed."""

    architecture: Architecture
    parameters: ParameterFigures | None
    inference: InferenceFigures | None = None
    training: TrainingFigures | None = None
    serving: ServiceReport | None = None
    cost: CostFigures | None = None
    weights_type: WeightsType | None = None
    assumptions: tuple[Assumption, ...] = ()
    left_out: tuple[OmittedFigure, ...] = ()
