import pytest

from app.fit.formulas.architecture import Architecture, typical_shape


@pytest.mark.parametrize(
    ("params", "layers", "hidden"),
    [
        (1_557_611_200, 48, 1600), (6_738_415_616, 32, 4096), (65_285_660_672, 80, 8192),
        (174_604_259_328, 96, 12_288), (405_853_388_800, 126, 16_384),
    ],
)  # fmt: skip
def test_what_grows_with_layers_and_width_is_within_a_third_of_published_models(
    params: int, layers: int, hidden: int
) -> None:
    shape = typical_shape(Architecture(params=params))
    made = shape.require("layers", "hidden")
    assert made[0] * made[1] == pytest.approx(layers * hidden, rel=1 / 3)


def test_what_is_known_stays() -> None:
    shape = typical_shape(Architecture(params=8_030_261_248, layers=32, kv_heads=8))
    assert (shape.layers, shape.kv_heads, shape.missing_fields("hidden", "heads", "head_dim", "intermediate")) == (
        32,
        8,
        (),
    )
