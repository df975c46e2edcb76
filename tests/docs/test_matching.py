"""The comparison of examples in the documentation with real output."""

import pytest

from tests.docs.matching import matches


@pytest.mark.parametrize(
    ("example", "output"),
    [
        ('{"a": 80, "b": null}', '{"b":null,"a":80.0}'),
        ('{"a": 1, …}', '{"a":1,"b":[2]}'),
        ("[1, …, 4]", "[1,2,3,4]"),
        ("[…, 2, …]", "[1,2,3,4]"),
        ('{"items": [{"name": "x", …}, …], "total": …}', '{"items":[{"name":"x","y":1},{"name":"z"}],"total":2}'),
        ('{"digest": "4…"}', '{"digest":"4866"}'),
        ("fact  … added\n…\nrevision 1", "fact  3 added   \nprice 1\noffer 2\nrevision 1\n"),
    ],
)
def test_an_output_like_its_example_passes(example: str, output: str) -> None:
    assert matches(example, output)


@pytest.mark.parametrize(
    ("example", "output"),
    [
        ('{"a": 1}', '{"a":1,"b":2}'),
        ('{"a": 1, …}', '{"b":2}'),
        ('{"a": true}', '{"a":1}'),
        ("[1, …, 4]", "[1,2,3]"),
        ("[1, …, 1]", "[1]"),
        ('{"a": "x…"}', '{"a":"y"}'),
        ("fact … added", "fact 3\nadded"),
        ("one\ntwo", "one\ntwo\nthree"),
    ],
)
def test_another_output_does_not(example: str, output: str) -> None:
    assert not matches(example, output)
