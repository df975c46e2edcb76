"""The response of GET /accuracy: how well estimates agree with what was measured."""

from datetime import date

from pydantic import Field

from app.schemas.sizes import Out


class FamilyAccuracyOut(Out):
    """How the estimates of one figure, for one kind of workload, agree with measurements."""

    family: str = Field(description="Id of the family, which an estimate's evidence names: `decode_step`.")
    title: str = Field(description="What is estimated.")
    figure: str = Field(description="The figure of POST /estimate: `inference.ttft`.")
    unit: str = Field(description="The unit of the figure.")
    leave_one_out_error: float | None = Field(
        description="Median error with the constants fitted without what is estimated; null where none is fitted."
    )
    left_out: str | None = Field(
        description="What they are fitted without: model is the error of models not in the data. Extensible."
    )
    left_out_n: int | None = Field(description="Number of measurements of that error.")
    left_out_in_range_share: float | None = Field(
        description="Share of them within the range of what was not measured; null where it has none."
    )
    n: int = Field(description="Number of measurements.")
    in_range_share: float = Field(description="Share of the measurements between low and high, 0 to 1.")
    range_width: float = Field(description="Median of high / low.")
    median_error: float = Field(description="Median of |mid / measured - 1|.")
    median_ratio: float = Field(description="Median of mid / measured.")
    worst_ratio: float = Field(description="The mid / measured that is furthest from 1.")
    compared_on: date = Field(description="Day of the comparison.")
    source: str = Field(description="Where the measurements are from.")
    license: str = Field(description="The licence of the measurements.")


class AccuracyOut(Out):
    """All families of measurements."""

    items: list[FamilyAccuracyOut] = Field(description="The families, in the order of the documentation.")
