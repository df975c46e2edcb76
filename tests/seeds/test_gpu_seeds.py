"""What must hold of the GPUs: every figure dense, no field of a GPU without a value where all have one."""

from decimal import Decimal

import pytest

from app.catalog.readings import Reading
from app.services.fit import MIN_USABLE_SHARE

Figures = dict[str, dict[str, set[Decimal | str]]]


@pytest.fixture(scope="module")
def gpus(by_file: dict[str, Reading]) -> Figures:
    """Return the values stated for each GPU, by field."""
    figures: Figures = {}
    for s in by_file["gpus"].facts:
        value = Decimal(s.value) if isinstance(s.value, (int, Decimal)) else str(s.value)
        figures.setdefault(s.subject, {}).setdefault(s.field, set()).add(value)
    return figures


def highest(gpus: Figures, gpu: str, field: str) -> Decimal | None:
    return max((v for v in gpus[gpu].get(field, ()) if isinstance(v, Decimal)), default=None)


def test_every_gpu_azure_rents_is_known(gpus: Figures) -> None:
    assert sorted(gpus) == sorted(
        [
            "a10",
            "a100-pcie-80",
            "a100-sxm-40",
            "a100-sxm-80",
            "gb200",
            "gb300",
            "h100-nvl-94",
            "h100-sxm-80",
            "h200-sxm-141",
            "k80-half",
            "m60",
            "m60-half",
            "mi25",
            "mi300x",
            "p100-pcie",
            "p40",
            "rtx-pro-6000-bse",
            "t4",
            "v100-pcie-16",
            "v100-sxm2-32",
            "v620",
            "v710",
        ]
    )


def test_every_gpu_has_the_fields_without_which_nothing_can_be_computed(gpus: Figures) -> None:
    needed = [
        "vendor",
        "model",
        "family",
        "aliases",
        "architecture",
        "compute_capability",
        "memory_gib",
        "memory_bandwidth_gb_per_s",
        "fp64_tflops",
        "fp32_tflops",
        "interconnect",
        "scale_up_domain_gpus",
    ]
    assert {id_: found for id_, said in gpus.items() if (found := set(needed) - set(said))} == {}


@pytest.mark.parametrize(
    ("fast", "slow"),
    [("fp8_tflops", "fp16_tflops"), ("int8_tops", "fp16_tflops"), ("fp16_tflops", "tf32_tflops")],
)
def test_half_the_bits_are_at_most_twice_as_fast_so_no_figure_is_sparse(gpus: Figures, fast: str, slow: str) -> None:
    inference_only = {("p40", "int8_tops")}  # its 16-bit path is 1/64 of its 32-bit one
    for id_ in gpus:
        quick, base = highest(gpus, id_, fast), highest(gpus, id_, slow)
        if quick is not None and base is not None and (id_, fast) not in inference_only:
            assert quick <= 2 * base * Decimal("1.01"), id_


def test_no_gpu_without_bf16_hardware_claims_it(gpus: Figures) -> None:
    without = {"k80-half", "m60-half", "m60", "p40", "p100-pcie", "v100-pcie-16", "v100-sxm2-32", "t4"}
    assert {id_ for id_ in gpus if "bf16_tflops" not in gpus[id_]} == without | {"mi25", "v620", "v710"}


def test_bf16_is_as_fast_as_fp16(gpus: Figures) -> None:
    assert all(gpus[id_]["bf16_tflops"] == gpus[id_]["fp16_tflops"] for id_ in gpus if "bf16_tflops" in gpus[id_])


def test_what_the_system_sees_is_less_than_what_is_marketed(gpus: Figures, by_file: dict[str, Reading]) -> None:
    corrected = {c.subject for c in by_file["corrections"].corrections if c.field == "usable_memory_gib"}
    assert corrected == {"v710"}
    measured = {id_ for id_ in gpus if highest(gpus, id_, "usable_memory_gib") is not None} - corrected
    assert len(measured) >= 15
    for id_ in measured:
        usable, marketed = highest(gpus, id_, "usable_memory_gib"), highest(gpus, id_, "memory_gib")
        assert usable is not None
        assert marketed is not None
        assert Decimal(str(MIN_USABLE_SHARE)) * marketed <= usable < marketed, id_


def test_no_source_is_a_recollection(by_file: dict[str, Reading]) -> None:
    named = {source.id: source.title for reading in by_file.values() for source in reading.sources}
    assert named
    assert not {id_ for id_, title in named.items() if "recall" in f"{id_} {title}".lower()}


@pytest.mark.parametrize(
    ("gpu", "field", "said"),
    [
        ("v710", "memory_gib", {28, 24}),
    ],
)
def test_a_figure_that_sources_disagree_on_has_two_values(gpus: Figures, gpu: str, field: str, said: set[int]) -> None:
    assert gpus[gpu][field] == {Decimal(n) for n in said}


@pytest.mark.parametrize(
    ("domain", "ids"),
    [
        (72, {"gb200", "gb300"}),
        (8, {"v100-sxm2-32", "a100-sxm-40", "a100-sxm-80", "h100-sxm-80", "h200-sxm-141", "mi300x"}),
        (2, {"a100-pcie-80", "h100-nvl-94"}),
    ],
)
def test_gpus_are_linked_in_domains_of_their_kind(gpus: Figures, domain: int, ids: set[str]) -> None:
    assert {id_ for id_ in gpus if gpus[id_]["scale_up_domain_gpus"] == {Decimal(domain)}} == ids
