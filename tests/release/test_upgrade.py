"""A running service is upgraded without a failed request, over ten commits since that was promised."""

import pytest

from tests.databases import SELECTED_KINDS
from tests.release.upgrade import spread_commits, upgrade_through

pytestmark = [pytest.mark.slow, pytest.mark.one_database]

PROMISED_SINCE = "e1dcf054"
"""The first commit after which migrations only expand: CONTRIBUTING.md has the rule."""


@pytest.mark.parametrize("kind", SELECTED_KINDS)
def test_no_request_fails_while_a_service_is_upgraded(kind: str) -> None:
    commits = spread_commits(10, PROMISED_SINCE)
    if len(commits) == 1:
        pytest.skip("the history of the repository is cut off, or there is none")
    seen = upgrade_through(commits, kind)
    assert {upgrade.commit: upgrade.failures for upgrade in seen if upgrade.failures} == {}
    assert min(upgrade.requests for upgrade in seen) > 0
