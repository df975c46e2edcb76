"""Names and texts that are taken apart are searched as they are searched whole."""

import re

import pytest

from app.catalog.queries.globs import glob_pattern
from app.catalog.queries.size_texts import SizeTexts

KEYS = ("basic_a0", "d4s_v5", "d4s_v6", "nd40rs_v2", "x1")
NAMES = ("basic_a0", "standard_d4s_v5", "standard_d4s_v6", "standard_nd40rs_v2", "renamed")
TEXTS = (
    *("basic_a0", "standard_d4s_v5 dsv5 dsv5-series", "standard_d4s_v6 dsv6"),
    *("standard_nd40rs_v2 ndv2 nvidia v100", "renamed xv1"),
)
GLOBS = (
    *(
        "*",
        "**",
        "?*",
        "d4s_v5",
        "standard_d4s_v5",
        "standard_",
        "standard_*",
        "standard_d4*",
        "d4*",
        "*_v5",
        "*_v?",
        "x1",
    ),
    *(
        "renamed",
        "ren*",
        "*med",
        "*d_d4*",
        "s*d*s*5",
        "?tandard_d4s_v?",
        "*dard_*",
        "standard_d4s_v5?",
        "[d]*",
        "d4s.v5",
        "",
    ),
)
WORDS = (
    *(
        "standard",
        "s",
        "_",
        "d_d",
        "rd_nd40",
        "v5",
        "_v5",
        "dsv",
        "series",
        "nvidia",
        "100",
        "x1",
        "renamed",
        "xv",
        "a0",
    ),
    *("standard_d4s_v5", "nothing", "d4*", "d4?_v5", "d4.", "standard_basic_a0"),
)


@pytest.fixture(scope="module")
def texts() -> SizeTexts:
    return SizeTexts(KEYS, NAMES, TEXTS)


@pytest.mark.parametrize("glob", GLOBS)
def test_a_glob_is_compared_with_whole_names_and_with_whole_keys(texts: SizeTexts, glob: str) -> None:
    expression = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in glob)
    key_glob = glob.removeprefix("standard_")
    key_expression = expression.removeprefix("standard_")
    found = texts.match(glob_pattern(key_glob), glob_pattern(glob)).tolist()
    wanted = zip(KEYS, NAMES, strict=True)
    assert found == [bool(re.fullmatch(key_expression, key) or re.fullmatch(expression, name)) for key, name in wanted]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_looked_for_in_whole_texts(texts: SizeTexts, word: str) -> None:
    assert texts.contain(word).tolist() == [word in text for text in TEXTS]


def test_a_catalog_without_sizes_has_no_names() -> None:
    texts = SizeTexts((), (), ())
    assert texts.match(glob_pattern("*"), glob_pattern("*")).tolist() == texts.contain("x").tolist() == []
