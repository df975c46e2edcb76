"""app.services names fields of bodies and of the dataclasses of app.fit, nothing else."""

from app.schemas.fit_request import ConstraintsIn, FitIn, HardwareIn, PricingIn
from tests.fit.named_fields import FIT_PARTS, is_field, names_in_package

SERVICE_PARTS: dict[str, type] = FIT_PARTS | {
    "": FitIn,
    "hardware": HardwareIn,
    "constraints": ConstraintsIn,
    "pricing": PricingIn,
}


def test_every_field_that_is_named_is_a_field() -> None:
    names = names_in_package("services", SERVICE_PARTS)
    assert {"hardware", "hardware.gpus", "pricing.hours", "sort", "model"} <= names.fields
    assert not [name for name in names.all_fields if not is_field(name, SERVICE_PARTS)]
