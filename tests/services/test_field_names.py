"""app.services names fields of its own dataclasses and of those of app.fit, nothing else."""

from app.services.machines import Hardware
from app.services.placement import PlacementSearch
from tests.fit.named_fields import FIT_PARTS, is_field, names_in_package

SERVICE_PARTS: dict[str, type] = FIT_PARTS | {"": PlacementSearch, "hardware": Hardware}


def test_every_field_that_is_named_is_a_field_of_a_dataclass() -> None:
    names = names_in_package("services", SERVICE_PARTS)
    assert {"hardware", "hardware.gpus", "pricing.hours", "sort", "model"} <= names.fields
    assert not [name for name in names.all_fields if not is_field(name, SERVICE_PARTS)]
