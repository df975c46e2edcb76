"""How many files of `app/` a request runs: what a reader has to open to follow it."""

import pytest

from app.main import create_asgi_app
from app.settings import Settings
from tests.tracing import EXAMPLES, files_run

pytestmark = pytest.mark.one_database  # one kind: the files are the same but for the driver's


MOST = (26, 24, 75)
"""Of these, each has one that bounds bodies, seven that count, log, trace and bound requests and add headers, and, if
it has prices, one that finds the rate of a currency; the fit of a model has seven for speed and time to the first token
(work, constants, links, domain), six for kinds of models, splits of experts and drafts, one that keeps what is found
for the same GPUs, and one that knows parts of a GPU."""


@pytest.mark.parametrize(("request_line", "most"), list(zip(EXAMPLES, MOST, strict=True)))
def test_a_request_runs_few_files(seeded_url: str, request_line: str, most: int) -> None:
    files = files_run(create_asgi_app(Settings(_env_file=None, database_url=seeded_url)), [request_line])[request_line]
    assert "app/http/middleware.py" in files
    assert len(files) <= most, files
