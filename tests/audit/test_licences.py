"""Licences are read as SPDX expressions, and every locked dependency has one that is allowed."""

import pytest

from app.settings import PROJECT
from tests.audit.licences import EXCEPTIONS, check_licences, is_allowed, pins


def test_every_locked_dependency_has_a_licence_that_is_allowed() -> None:
    findings = list(check_licences(PROJECT / "requirements-dev.lock"))
    assert len(findings) > 80
    assert [f"{each.package}: {each.problem}" for each in findings if each.problem] == []
    assert set(EXCEPTIONS) <= {each.package for each in findings}


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only OR AGPL-3.0-only", False),
        ("MPL-2.0 AND (Apache-2.0 OR GPL-2.0-only)", True),
        ("(GPL-3.0-only OR MIT) AND (AGPL-3.0-only)", False),
        ("", False),
        ("MIT (", False),
        ("Proprietary", False),
    ],
)
def test_an_expression_is_allowed_by_its_parts(expression: str, allowed: bool) -> None:
    assert is_allowed(expression) is allowed


def test_what_an_installation_needs_is_locked_beside_what_tests_need() -> None:
    runtime, dev = (pins(PROJECT / name) for name in ("requirements.lock", "requirements-dev.lock"))
    assert runtime.items() <= dev.items()
