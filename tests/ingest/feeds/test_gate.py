"""When the newest list of a region is refused."""

from collections.abc import Callable

import pytest

from app.ingest.feeds.gate import PriceKey, check_list, find_jumps, series_of

USD = 10**9


def listing(sizes: int = 100) -> dict[PriceKey, int]:
    """Return the Linux on-demand and spot prices of that many sizes, in two series of equal numbers."""
    names = [f"{series}{n}s_v5" for series in "de" for n in range(sizes // 2)]
    return {
        PriceKey(name, "linux", purchase): usd * USD
        for name in names
        for purchase, usd in (("on_demand", 10), ("spot", 2))
    }


def without(keep: Callable[[PriceKey], bool]) -> dict[PriceKey, int]:
    return {key: nano for key, nano in listing().items() if keep(key)}


def repriced(factor: float, *, sizes: int, purchase: str = "on_demand") -> dict[PriceKey, int]:
    """Return the list with the prices of that many sizes multiplied."""
    chosen = [key for key in listing() if key.purchase == purchase][:sizes]
    return listing() | {key: int(listing()[key] * factor) for key in chosen}


def test_the_same_list_is_accepted() -> None:
    assert check_list(listing(), listing()) == ()


def test_the_first_list_of_a_region_has_nothing_to_be_compared_with() -> None:
    assert check_list({}, listing()) == ()


def test_a_list_may_grow() -> None:
    assert check_list(listing(), listing(400)) == ()


def test_a_list_may_lose_a_fifth_of_its_prices_and_no_more() -> None:
    def lose(sizes: int) -> tuple[str, ...]:
        gone = {f"{series}{n}s_v5" for series in "de" for n in range(sizes // 2)}
        return check_list(listing(), without(lambda key: key.size not in gone))

    assert lose(20) == ()
    assert lose(22) == ("44 of 200 prices (22 %) are gone",)


def test_prices_that_are_replaced_by_others_are_lost() -> None:
    """A rename of every size would leave the number of prices as it is."""
    renamed = {key._replace(size=f"x{key.size}"): nano for key, nano in listing().items()}
    assert check_list(listing(), renamed)[0] == "200 of 200 prices (100 %) are gone"
    one_left = renamed | dict([*listing().items()][:1])
    assert check_list(listing(), one_left)[0] == "199 of 200 prices (99 %) are gone"


def test_a_series_may_lose_half_of_its_prices_and_no_more() -> None:
    large = listing(1000)

    def lose(share: float) -> tuple[str, ...]:
        few = {f"nc{n}s_v3": 0 for n in range(10)}
        series = {PriceKey(name, "linux", "spot"): USD for name in few}
        gone = set([*series][: int(10 * share)])
        return check_list(large | series, {key: nano for key, nano in (large | series).items() if key not in gone})

    assert lose(0.5) == ()
    assert lose(0.6) == ("6 of 10 prices of ncs_v3 are gone",)


def test_a_series_of_few_prices_may_go() -> None:
    small = {PriceKey("nc6", "linux", "on_demand"): USD}
    assert check_list(listing() | small, listing()) == ()


def test_a_promotion_may_end() -> None:
    promotion = {PriceKey(f"d{n}_v2_promo", "linux", "on_demand"): USD for n in range(8)}
    assert check_list(listing() | promotion, listing()) == ()


@pytest.mark.parametrize("purchase", ["on_demand", "reserved_1y", "reserved_3y", "savings_1y", "savings_3y"])
@pytest.mark.parametrize("factor", [5, 0.2])
def test_one_price_that_jumps_is_found_and_refuses_no_list(purchase: str, factor: float) -> None:
    key = PriceKey("nc6", "windows", purchase)
    before = listing() | {key: USD}

    def change(to: float) -> dict[PriceKey, int]:
        return listing() | {key: int(USD * to)}

    jump = 5.1 if factor > 1 else 0.19
    assert find_jumps(before, change(factor)) == []
    assert find_jumps(before, change(jump)) == [key]
    assert check_list(before, change(jump)) == ()


def test_a_spot_price_may_move_further() -> None:
    assert find_jumps(listing(), repriced(10, sizes=1, purchase="spot")) == []
    assert find_jumps(listing(), repriced(10.5, sizes=1, purchase="spot")) == [PriceKey("d0s_v5", "linux", "spot")]


def test_a_reservation_that_is_not_divided_by_its_hours_is_noticed() -> None:
    key = PriceKey("nc6", "linux", "reserved_1y")
    assert find_jumps(listing() | {key: USD}, listing() | {key: 8760 * USD}) == [key]


def test_many_prices_may_not_change_at_once() -> None:
    assert check_list(listing(), repriced(2.5, sizes=10)) == ()
    assert check_list(listing(), repriced(2.5, sizes=11)) == ("11 of 200 prices (6 %) changed more than 2 times",)


def test_all_prices_may_change_a_little() -> None:
    assert check_list(listing(), repriced(1.9, sizes=100)) == ()


def test_a_list_that_is_refused_is_told_with_its_jumps() -> None:
    findings = check_list(listing(), repriced(10.5, sizes=11, purchase="spot"))
    assert findings[0].startswith("11 spot prices changed more than 10 times: d0s_v5 linux spot 2 -> 21; ")
    assert findings[1] == "11 of 200 prices (6 %) changed more than 2 times"


def test_only_a_few_of_many_jumps_are_quoted() -> None:
    findings = check_list(listing(), repriced(100, sizes=50))
    assert findings[0].startswith("50 prices changed more than 5 times: ")
    assert findings[0].count("->") == 3


@pytest.mark.parametrize(
    ("size", "series"),
    [
        ("b16als_v2", "bals_v2"),
        ("nc24ads_a100_v4", "ncads_a100_v4"),
        ("e16-4ds_v5", "eds_v5"),
        ("nd96isr_h100_v5", "ndisr_h100_v5"),
        ("basic_a0", "basic_a"),
    ],
)
def test_sizes_that_differ_in_their_number_only_are_one_series(size: str, series: str) -> None:
    assert series_of(size) == series
