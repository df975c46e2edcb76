from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.features import ESSENTIAL_FEATURES, FEATURE_NAMES, FEATURES
from app.fit.successors import (
    LOCAL_DISK_FEATURES,
    Candidate,
    Market,
    candidate_failures,
    differences,
    features_to_give_up,
    find_shortcomings,
    find_successors,
    refuse_all,
    unknown_features,
)
from app.fit.verdict import Failure

UNPRICED = Failure("region", "NOT_IN_REGION", "has no price in mars")


def machine(
    name: str, *, family: str | None = "D", category: str | None = "general_purpose", **values: Any
) -> Candidate:
    """A VM with 4 vCPUs and 16 GiB; a test names only what it is about."""
    ordinary: dict[str, Any] = {"vcpus": 4, "memory_gib": 16.0, "arch": "x64"}
    known = ordinary | values
    assert set(known) <= set(FEATURE_NAMES)
    return Candidate(
        key=name.lower(),
        name=name,
        status="current",
        verified=True,
        family=family,
        category=category,
        values=tuple(known.get(feature) for feature in FEATURE_NAMES),
    )


def successors(
    old: Candidate, *candidates: tuple[Candidate, str], keep: tuple[str, ...] = ESSENTIAL_FEATURES, most: int = 9
) -> list[tuple[str, str]]:
    market = Market([one for one, _ in candidates], {one.key: Decimal(usd) for one, usd in candidates})
    return [(size.name, differences(old, size).relation) for size in find_successors(old, market, keep, most)]


def test_the_cheapest_comes_first_whatever_its_family_and_what_else_it_loses() -> None:
    old = machine("Old", family="F", category="compute_optimized", generation_1=True)
    found = successors(
        old,
        (machine("Own", family="F", category="compute_optimized", generation_1=True), "0.30"),
        (machine("Cheap", generation_1=False), "0.20"),
        (machine("Other", family="E", category="memory_optimized", generation_1=True), "0.25"),
    )
    assert found == [("Cheap", "other"), ("Other", "other"), ("Own", "same_family")]


def test_at_the_same_price_what_loses_least_comes_first_then_the_family_then_the_category() -> None:
    found = successors(
        machine("Old", max_nics=4),
        (machine("A", max_nics=2), "1"),
        (machine("B", family="E", category="memory_optimized", max_nics=4), "1"),
        (machine("C", family="B", max_nics=4), "1"),
        (machine("D", max_nics=4), "1"),
        most=4,
    )
    assert [name for name, _ in found] == ["D", "C", "B", "A"]
    assert successors(machine("Old"), (machine("B"), "1"), (machine("A"), "1"), most=1) == [("A", "same_family")]


@pytest.mark.parametrize(
    ("now", "keeping", "lacking", "most", "expected"),
    [
        ("1", "2.1", "1", 2, ["Lacks", "Keeps"]),
        ("1", "2.1", "1", 1, ["Lacks"]),
        ("1", "2", "0.9", 2, ["Keeps"]),  # no more than twice the old price
        ("1", "2.1", "1.05", 2, ["Keeps"]),  # nor twice that of the other
    ],
)
def test_what_a_local_disk_gives_does_not_outrank_a_doubled_price(
    now: str, keeping: str, lacking: str, most: int, expected: list[str]
) -> None:
    old = machine("Old", local_disk=True, ephemeral_os_disk=True, premium_storage=True)
    candidates = {
        old: now,
        machine("Keeps", local_disk=True, ephemeral_os_disk=True, premium_storage=True): keeping,
        machine("Lacks", local_disk=False, premium_storage=True): lacking,
        machine("Lacks2", local_disk=False, premium_storage=False): "0.1",
        machine("Lacks3", local_disk=False, premium_storage=True, category="gpu_accelerated"): "0.2",
    }
    market = Market(candidates, {one.key: Decimal(usd) for one, usd in candidates.items()})
    found = find_successors(old, market, ESSENTIAL_FEATURES, most, LOCAL_DISK_FEATURES)
    assert [size.name for size in found] == expected
    strict = find_successors(old, market, ESSENTIAL_FEATURES, most)
    assert [size.name for size in strict] == ["Keeps"]
    unpriced = Market(candidates, {key: usd for key, usd in market.usd_per_hour.items() if key != old.key})
    found = find_successors(old, unpriced, ESSENTIAL_FEATURES, most, LOCAL_DISK_FEATURES)
    assert [size.name for size in found] == ["Keeps"]


@pytest.mark.parametrize("category", ["storage_optimized", "gpu_accelerated", "fpga_accelerated"])
def test_sizes_with_hardware_of_their_own_are_replaced_by_such_and_replace_others_last(category: str) -> None:
    special, plain = machine("Special", family="L", category=category), machine("Plain")
    like, other = machine("Like", family="LX", category=category), machine("Other", family="E")
    assert [name for name, _ in successors(special, (plain, "1"), (like, "9"))] == ["Like", "Plain"]
    assert [name for name, _ in successors(plain, (special, "1"), (other, "9"))] == ["Other", "Special"]


def test_sizes_on_which_the_image_does_not_start_come_last_even_if_they_may() -> None:
    found = successors(
        machine("Old", generation=frozenset("1")),
        (machine("Arm", arch="arm64", generation=frozenset("1")), "1"),
        (machine("Newer", generation=frozenset("2")), "2"),
        (machine("Plain", generation=frozenset("12")), "3"),
        keep=("vcpus", "memory_gib"),
    )
    assert [name for name, _ in found] == ["Plain", "Arm", "Newer"]


def test_gpus_are_counted_among_those_of_one_model_and_of_another_the_memory_counts() -> None:
    def gpus(name: str, model: str | None, count: float, memory: float) -> Candidate:
        each = memory / max(count, 1)
        return machine(name, gpu_model=model, gpu_count=count, gpu_memory_gib=memory, gpu_memory_gib_per_gpu=each)

    old = gpus("Old", "V100", 4, 64)
    candidates = (
        (gpus("Fewer", "V100", 2, 64), "1"),
        (gpus("Newer", "A100", 1, 80), "2"),
        (gpus("Small", "T4", 2, 32), "2"),
        (gpus("Unknown", None, 1, 80), "3"),
        (gpus("Own", "V100", 4, 64), "4"),
    )
    assert [name for name, _ in successors(old, *candidates)] == ["Newer", "Own"]
    assert [name for name, _ in successors(old, *candidates, keep=(*ESSENTIAL_FEATURES, "gpu_model"))] == ["Own"]
    lost = [one.detail for one in differences(old, candidates[1][0]).lost]
    assert lost == ["GPUs: 4 -> 1", "GPU model: V100 -> A100"]


def test_two_sizes_of_unknown_families_are_not_of_the_same_family() -> None:
    old, new = (machine(name, family=None, category=None) for name in ("Old", "New"))
    assert successors(old, (new, "1")) == [("New", "other")]


def test_a_size_is_no_successor_of_itself() -> None:
    assert successors(machine("Old"), (machine("Old"), "1")) == []


def test_an_unknown_figure_of_the_old_size_constrains_nothing_and_is_named() -> None:
    old, new = machine("Old", memory_gib=None), machine("New", memory_gib=None)
    assert successors(old, (new, "1")) == [("New", "same_family")]
    assert "memory_gib" in unknown_features(old, ESSENTIAL_FEATURES)
    assert "vcpus" not in unknown_features(old, ESSENTIAL_FEATURES)


def test_an_unknown_figure_of_a_candidate_does_not_meet_the_need() -> None:
    assert successors(machine("Old"), (machine("New", memory_gib=None), "1")) == []


def test_of_a_size_without_gpus_no_figure_of_gpus_is_unknown() -> None:
    features = unknown_features(machine("Old", gpu_count=0.0), ESSENTIAL_FEATURES)
    assert not {feature.name for feature in FEATURES if feature.of_gpu} & set(features)


@pytest.mark.parametrize(
    ("feature", "old", "enough", "short"),
    [
        ("vcpus", 4, 4, 3),
        ("gpu_memory_gib", 16.0, 24.0, 15.9),
        ("premium_storage", True, True, False),
        ("gpu_vendor", "NVIDIA", "NVIDIA", "AMD"),
        ("arch", "x64", "x64", "arm64"),
        ("generation", frozenset("12"), frozenset("2"), frozenset()),
    ],
)
def test_what_the_old_size_has_is_kept(feature: str, old: Any, enough: Any, short: Any) -> None:
    before = machine("Old", **{feature: old})
    assert successors(before, (machine("New", **{feature: enough}), "1"))
    assert not successors(before, (machine("New", **{feature: short}), "1"))
    others = tuple(name for name in ESSENTIAL_FEATURES if name != feature)
    assert successors(before, (machine("New", **{feature: short}), "1"), keep=others)


@pytest.mark.parametrize(("feature", "value"), [("premium_storage", False), ("gpu_count", 0.0), ("local_disk", False)])
def test_what_the_old_size_lacks_is_not_required(feature: str, value: Any) -> None:
    assert successors(machine("Old", **{feature: value}), (machine("New"), "1"))


def test_a_feature_that_is_given_up_does_not_put_a_dearer_size_first() -> None:
    old = machine("Old", infiniband=True)
    found = successors(
        old,
        (machine("Cheap", infiniband=False), "1"),
        (machine("Whole", infiniband=True), "9"),
        keep=("vcpus", "memory_gib"),
    )
    assert [name for name, _ in found] == ["Cheap", "Whole"]


def test_differences_are_kept_gained_lost_and_unknown() -> None:
    old = machine("Old", max_data_disks=8, premium_storage=True, ultra_disk=False, max_nics=2, gpu_count=1 / 6)
    new = machine("New", max_data_disks=4, premium_storage=True, ultra_disk=True, vcpus=8, gpu_count=1 / 3)
    found = differences(old, new)
    assert set(found.kept) == {"memory_gib", "arch", "premium_storage"}
    assert [one.detail for one in found.gained] == ["vCPUs: 4 -> 8", "GPUs: 0.1667 -> 0.3333", "ultra disk: no -> yes"]
    assert [(one.feature, one.old, one.new, one.unit) for one in found.lost] == [("max_data_disks", 8, 4, "count")]
    assert found.unknown == ["max_nics"]


def test_differences_in_words_have_separators_names_and_one_label_each() -> None:
    old = machine("Old", coremark=25478, memory_gib=480.0, ephemeral_os_disk=True, local_disk=True, local_disk_gib=8.0)
    new = machine(
        "New", coremark=38061, memory_gib=2268.139, ephemeral_os_disk=False, local_disk=False, local_disk_gib=0.0
    )
    found = differences(old, new)
    assert [change.detail for change in (*found.gained, *found.lost)] == [
        "memory: 480 -> 2,268.139 GiB",
        "CoreMark: 25,478 -> 38,061 iterations/s",
        "local disk: yes -> no",
        "ephemeral OS disk: yes -> no",
        "local disk space: 8 -> 0 GiB",
    ]


def test_every_reason_is_counted_and_the_nearest_miss_has_all_of_its_own() -> None:
    old = machine("Old", infiniband=True)
    near, far = machine("Near", infiniband=True, vcpus=2), machine("Far", infiniband=False, vcpus=1, memory_gib=1.0)
    failures: dict[str, tuple[Any, ...]] = {"near": (), "far": ()}
    refusals = refuse_all(find_shortcomings(old, [near, far, old], ESSENTIAL_FEATURES, failures), {"far"}, UNPRICED)
    assert refusals.summary == {"NOT_IN_REGION": 1, "NO_INFINIBAND": 1, "RAM": 1, "VCPU": 2}
    assert [one.vm.name for one in refusals.nearest] == ["Near", "Far"]
    assert [failure.detail for failure in refusals.nearest[0].failures] == [
        "has no price in mars",
        "needs 4 vCPUs, has 2",
    ]


def test_the_smallest_sets_of_features_to_give_up_are_found() -> None:
    old = machine("Old", infiniband=True, nvlink=True)
    candidates = [
        machine("NoLinks", infiniband=False, nvlink=False),
        machine("NoIb", infiniband=False, nvlink=True),
        machine("Small", infiniband=True, nvlink=True, vcpus=2),
        machine("Unpriced", infiniband=True, nvlink=True, memory_gib=8.0),
    ]
    found = find_shortcomings(old, candidates, ESSENTIAL_FEATURES, {one.key: () for one in candidates})
    prices = {"nolinks": Decimal(1), "noib": Decimal(3), "small": Decimal(2)}
    assert features_to_give_up(found, prices) == [("vcpus",), ("infiniband",)]


def test_a_size_in_preview_or_retiring_soon_or_unverified_is_no_candidate() -> None:
    def codes(**more: Any) -> list[str]:
        about: dict[str, Any] = {"key": "x", "name": "X", "status": "current", "verified": True, "values": ()}
        return [one.code for one in candidate_failures(Candidate(**about | more), date(2029, 1, 1))]

    assert codes() == []
    assert codes(status="retiring", retirement_date=date(2029, 1, 1)) == []
    assert codes(status="retiring", retirement_date=date(2028, 12, 31)) == ["RETIRING"]
    assert codes(status="preview", verified=False) == ["PREVIEW", "UNVERIFIED"]


AMOUNTS = st.one_of(st.none(), st.integers(0, 4))
FLAGS = st.sampled_from([None, True, False])
MACHINES = st.fixed_dictionaries(
    {"vcpus": AMOUNTS, "memory_gib": AMOUNTS, "infiniband": FLAGS, "premium_storage": FLAGS}
)


@given(MACHINES, st.lists(MACHINES, max_size=6))
def test_giving_up_what_is_said_makes_a_successor_exist(old: dict[str, Any], others: list[dict[str, Any]]) -> None:
    before, candidates = machine("Old", **old), [machine(f"New{at}", **one) for at, one in enumerate(others)]
    prices = {one.key: Decimal(1) for one in candidates}
    market = Market(candidates, prices)
    found = find_shortcomings(before, candidates, ESSENTIAL_FEATURES, {one.key: () for one in candidates})
    if find_successors(before, market, ESSENTIAL_FEATURES, 1):
        assert () in found.features
    for names in features_to_give_up(found, prices) if () not in found.features else ():
        assert find_successors(before, market, [one for one in ESSENTIAL_FEATURES if one not in names], 1)
        for kept in names:
            less = [one for one in ESSENTIAL_FEATURES if one not in names or one == kept]
            assert not find_successors(before, market, less, 1), "a part of the features would do"


def test_a_processor_is_kept_by_one_of_those_that_a_vm_may_get() -> None:
    old = machine("Old", cpu_model=frozenset({"X1", "X2"}), coremark=1000, disk_controller=frozenset({"SCSI"}))
    new = machine("New", cpu_model=frozenset({"X2"}), coremark=1200, disk_controller=frozenset({"NVMe"}))
    changes = differences(old, new)
    assert "cpu_model" in changes.kept
    assert [change.detail for change in changes.gained] == ["CoreMark: 1,000 -> 1,200 iterations/s"]
    assert [change.detail for change in changes.lost] == ["disk controller: SCSI -> NVMe"]
