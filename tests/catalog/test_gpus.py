import pytest
from sqlalchemy import Engine

from app.catalog.queries.lookups import get_gpu
from app.db.engines import read_session
from app.errors import NotFound

pytestmark = pytest.mark.first_database


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("a100-sxm-80", "a100-sxm-80"), ("A100-80GB", "a100-sxm-80"), ("H100-SXM-80GB", "h100-sxm-80"),
        ("H100 NVL", "h100-nvl-94"), ("h200", "h200-sxm-141"), ("T4-16GB", "t4"), ("V100-32GB", "v100-sxm2-32"),
        ("Tesla T4", "t4"), ("MI300X-192GB", "mi300x"), ("A100-40GB", "a100-sxm-40"),
        ("RTX PRO 6000", "rtx-pro-6000-bse"),
    ],
)  # fmt: skip
def test_a_gpu_is_found_by_whatever_it_is_called(seeded_engine: Engine, name: str, gpu: str) -> None:
    with read_session(seeded_engine) as session:
        assert get_gpu(session, name)["id"] == gpu


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("A100", ("a100-pcie-80", "a100-sxm-40", "a100-sxm-80")),
        ("80GB", ()),
        ("h100-sxm-8", ("h100-sxm-80",)),
        ("", ()),
    ],
)
def test_a_name_that_several_have_or_none_is_refused_with_the_nearest(
    seeded_engine: Engine, name: str, nearest: tuple[str, ...]
) -> None:
    with read_session(seeded_engine) as session, pytest.raises(NotFound) as refused:
        get_gpu(session, name)
    assert set(nearest) <= set(refused.value.suggestions)
