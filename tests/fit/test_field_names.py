"""app.fit names fields of its own dataclasses, fields of a `config.json` and figures of an estimate, nothing else."""

import pytest

from app.fit.formulas.quantities import DEFAULTS
from tests.fit.named_fields import FIT_PARTS, Names, is_field, is_figure, names_in, names_in_package


@pytest.fixture(scope="module")
def names() -> Names:
    return names_in_package("fit", FIT_PARTS)


def test_every_default_is_of_a_field_of_a_dataclass() -> None:
    assert not [name for name in DEFAULTS if not is_field(name, FIT_PARTS)]


def test_every_field_that_is_wrong_or_assumed_is_a_field_of_a_dataclass(names: Names) -> None:
    assert {"memory_unknown", "inference", "constraints.min_nodes", "*.tensor_parallel"} <= names.fields
    assert not [name for name in names.fields if not is_field(name, FIT_PARTS)]


def test_every_figure_that_is_left_out_is_a_figure_of_an_estimate(names: Names) -> None:
    assert {"inference.memory_per_gpu.activations", "training.states"} <= names.figures
    assert not [name for name in names.figures if not is_figure(name)]


def test_every_other_name_with_a_dot_is_a_field_or_a_figure(names: Names) -> None:
    assert {"inference.dtype", "gpus.peak_tflops"} <= names.whole
    assert "inference.utilization" in names.in_texts
    assert not [name for name in names.whole | names.in_texts if not is_field(name, FIT_PARTS) and not is_figure(name)]


@pytest.mark.parametrize(
    "source",
    [
        "raise InvalidWorkload('hardware', 'needs gpu')",
        "raise InvalidWorkload('hardware.gpu', 'is unknown')",
        "raise InvalidWorkload('constraints.regions.0', 'is unknown')",
        "assumptions.record('inference.users', 1, 'one user')",
        "assumptions.record(f'constraints.{name}', 1, 'as usual')",
        "assumptions.record('inference.kv_cache', 1, 'a figure, no field')",
        "raise InvalidWorkload('training.tokens', 'and pricing.as_of say the same thing')",
        "MISSING = ('gpus.memory',)",
    ],
)
def test_a_name_of_a_field_that_no_dataclass_has_is_found(source: str) -> None:
    found = names_in(source)
    assert [name for name in found.all_fields if not is_field(name, FIT_PARTS)]
