from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.catalog.fields import SIZE_FLAGS
from app.catalog.queries.filters import FILTERS
from app.catalog.queries.params import SizeFilter, SizeRequirements, SizeSearch, parse_gpu_count


def test_every_filter_has_its_sql_and_no_sql_is_left_over() -> None:
    assert set(FILTERS) == set(SizeFilter.model_fields)


def test_every_flag_has_a_filter() -> None:
    assert set(SIZE_FLAGS) <= set(SizeRequirements.model_fields)


@pytest.mark.parametrize("written", ["1/6", "0.1667", 0.1667, "0.16667"])
def test_a_sixth_of_a_gpu_is_parsed_from_every_spelling(written: object) -> None:
    assert SizeSearch(min_gpus=written).min_gpus == 1 / 6


@given(st.integers(1, 8), st.integers(1, 8))
def test_a_fraction_shown_to_four_digits_is_read_back_exactly(numerator: int, denominator: int) -> None:
    shown = f"{numerator / denominator:.4f}"
    assert parse_gpu_count(shown) == float(Fraction(numerator, denominator))


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        SizeSearch(min_gpu_men=80)  # type: ignore[call-arg]  # the point of the test


def test_an_empty_value_is_absent_and_a_comma_separates() -> None:
    asked = SizeSearch.model_validate({"min_gpu_mem": "", "gpu": ["A100,H100", "V100"], "region": [""], "q": ""})
    assert asked.min_gpu_mem is None
    assert asked.gpu == ("a100", "h100", "v100")
    assert asked.region == ()


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e999", "abc", "1/0"])
def test_a_quantity_that_is_no_finite_number_is_refused(value: str) -> None:
    with pytest.raises(ValidationError):
        SizeSearch.model_validate({"min_gpu_mem": value})
    with pytest.raises(ValidationError):
        SizeSearch.model_validate({"min_gpus": value})


@pytest.mark.parametrize("text", ["a\x00b", "a\nb", "\ud800"])
def test_text_that_no_database_takes_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        SizeSearch.model_validate({"q": text})
