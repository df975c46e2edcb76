"""The European Central Bank's files: their two forms, what is wrong with them, and fetching them over a connection."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from sqlalchemy import Engine
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from app.errors import BadData
from app.ingest.feeds.exchange_rates import MAX_BYTES, SOURCE_ID, read_reference_rates, run_rate_refresh
from app.ingest.feeds.fetching import MAX_PAGE_BYTES, RetryPolicy
from app.ingest.run import ingest
from tests.factories import NOW, reading, size
from tests.servers import server

HISTORY = b"""Date,USD,JPY,BGN,HRK,
2026-01-02,1.1721,183.85,N/A,N/A,
2025-12-31,1.175,184.09,1.9558,N/A,
2022-12-30,1.0666,140.66,1.9558,7.5365,
1999-01-04,1.1789,133.73,N/A,N/A,
"""
ONE_DAY = b"Date, USD, JPY, \n05 January 2026, 1.1691, 182.91, \n"
QUICK = RetryPolicy(attempts=3, first_wait=0.001, longest_wait=0.01)


def zipped(*files: bytes) -> bytes:
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for number, data in enumerate(files):
            archive.writestr(f"eurofxref-{number}.csv", data)
    return buffer.getvalue()


def shown(data: bytes) -> list[tuple[str, str, str]]:
    rates = read_reference_rates(data, "some.csv").exchange_rates
    return [(str(rate.day), rate.currency, str(rate.units_per_euro)) for rate in rates]


@pytest.mark.parametrize("data", [HISTORY, zipped(HISTORY)], ids=["plain", "zipped"])
def test_the_history_is_read_from_2023_on_without_what_is_not_available(data: bytes) -> None:
    assert shown(data) == [
        ("2026-01-02", "USD", "1.1721"),
        ("2026-01-02", "JPY", "183.85"),
        ("2025-12-31", "USD", "1.175"),
        ("2025-12-31", "JPY", "184.09"),
        ("2025-12-31", "BGN", "1.9558"),
    ]


def test_the_file_of_one_day_has_another_form_of_date() -> None:
    assert shown(ONE_DAY) == [("2026-01-05", "USD", "1.1691"), ("2026-01-05", "JPY", "182.91")]


def test_a_zip_is_unpacked_only_as_far_as_the_banks_file_may_be_long() -> None:
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive, archive.open("bomb.csv", "w", force_zip64=True) as bomb:
        for _ in range(MAX_BYTES // 2**20 + 2):
            bomb.write(bytes(2**20))
    data = buffer.getvalue()
    assert len(data) < 100_000
    with pytest.raises(BadData, match=r"^rates\.zip: unpacks to more than 50,000,000 bytes$"):
        read_reference_rates(data, "rates.zip")


@pytest.mark.parametrize("cut", [range(10), range(20, 60), range(60, 200)])
def test_a_damaged_zip_is_refused_with_its_name(cut: range) -> None:
    data = zipped(HISTORY)
    damaged = data[: cut.start] + data[cut.stop :]
    with pytest.raises(BadData, match=r"^rates\.zip: is neither a CSV file in UTF-8 nor a zip of one|^rates\.zip:1"):
        read_reference_rates(damaged, "rates.zip")


def test_the_source_names_the_bank_and_the_newest_day() -> None:
    (source,) = read_reference_rates(HISTORY, "some.csv").sources
    assert (source.id, source.publisher, source.published_on) == (
        SOURCE_ID,
        "European Central Bank",
        date(2026, 1, 2),
    )


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"", "some.csv:1: '': the first column must be Date"),
        (b"<!DOCTYPE html>\n<p>moved</p>\n", "some.csv:1: '<!DOCTYPE html>': the first column must be Date"),
        (b"Date,JPY,\n", "some.csv:1: column 'USD': is missing from the header"),
        (b"Date,USD,Yen,\n", "some.csv:1: column 'Yen': 'Yen': must be the code of a currency, such as USD"),
        (b"Date,USD,JPY,USD,\n", "some.csv:1: column 'USD': is in the header twice"),
        (b"Date,USD,\n2026-01-02,1.1\n", "some.csv:2: has 2 cells where the header names 3 columns"),
        (b"Date,USD,\n2026-01-02,N/A,\n", "some.csv:2: column 'USD': 'N/A': must be a number above 0"),
        (b"Date,USD,JPY,\n2026-01-02,1.1,0,\n", "some.csv:2: column 'JPY': '0': must be a number above 0"),
        (b"Date,USD,\n02/01/2026,1.1,\n", "some.csv:2: column 'Date': '02/01/2026': must be a date"),
        (b"Date,USD,\n31 June 2026,1.1,\n", "some.csv:2: column 'Date': '31 June 2026': is not a day of the calendar"),
        (b"Date,USD,\n2 January 2095,1.1,\n", "some.csv:2: column 'Date': '2 January 2095': is in the future"),
        (
            b"Date,USD,\n2026-01-02,1.1,\n2026-01-02,1.1,\n",
            "some.csv:3: column 'Date': '2026-01-02': is listed twice",
        ),
        (b'Date,USD,\n2026-01-02,"1.1,\n', "some.csv:2: is not a CSV file"),
        (b"Date,\xff\n", "some.csv: is neither a CSV file in UTF-8 nor a zip of one"),
        (zipped(HISTORY, HISTORY), "some.csv: has 2 files; a zip of one CSV file is expected"),
    ],
)
def test_bad_data_is_named_with_file_line_and_column(data: bytes, detail: str) -> None:
    with pytest.raises(BadData) as caught:
        shown(data)
    assert detail in str(caught.value)


@contextmanager
def serving(answer: Callable[[int], Response]) -> Iterator[str]:
    """Serve a file; `answer` gets how often it was asked for before."""
    asked = iter(range(100))

    async def file(_: Request) -> Response:
        return answer(next(asked))

    with server(Starlette(routes=[Route("/eurofxref-hist.zip", file)])) as base:
        yield f"{base}/eurofxref-hist.zip"


@pytest.fixture
def catalog(engine: Engine) -> Engine:
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    return engine


@pytest.mark.first_database
def test_a_response_that_unpacks_without_end_is_given_up_at_once(catalog: Engine) -> None:
    packed = gzip.compress(bytes(MAX_PAGE_BYTES + 2**20), 1)
    asked: list[int] = []

    def answer(before: int) -> Response:
        asked.append(before)
        return Response(packed, headers={"content-encoding": "gzip"})

    with (
        serving(answer) as url,
        pytest.raises(BadData, match=r"eurofxref-hist\.zip: 127\.0\.0\.1 sent more than 67,108,864 bytes"),
    ):
        run_rate_refresh(catalog, url=url, now=NOW, policy=QUICK)
    assert asked == [0]


@pytest.mark.first_database
def test_a_server_that_sends_a_byte_now_and_then_is_given_up(catalog: Engine) -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b"x"
            await asyncio.sleep(0.05)

    asked: list[int] = []

    def answer(before: int) -> Response:
        asked.append(before)
        return StreamingResponse(drip())

    with (
        serving(answer) as url,
        pytest.raises(BadData, match=r"eurofxref-hist\.zip: 127\.0\.0\.1 did not send all of it in 0\.5 s"),
    ):
        run_rate_refresh(catalog, url=url, now=NOW, policy=replace(QUICK, longest_transfer=0.5))
    assert asked == [0]


@pytest.mark.first_database
@pytest.mark.parametrize("target", ["http://127.0.0.1:9/rates", "/other", "https://elsewhere.example/rates"])
def test_a_redirect_to_another_host_or_without_tls_is_not_followed(catalog: Engine, target: str) -> None:
    with (
        serving(lambda before: RedirectResponse(target) if not before else Response(zipped(HISTORY))) as url,
        pytest.raises(BadData, match=r"redirects to .*; only https at 127\.0\.0\.1 is followed"),
    ):
        run_rate_refresh(catalog, url=url, now=NOW, policy=QUICK)


@pytest.mark.first_database
def test_a_saved_file_that_is_longer_than_any_is_not_read_whole(catalog: Engine, tmp_path: Path) -> None:
    saved = tmp_path / "rates.csv"
    with saved.open("wb") as sparse:
        sparse.truncate(2**36)
    with pytest.raises(BadData, match=r"rates\.csv: has more than 67,108,864 bytes"):
        run_rate_refresh(catalog, file=saved, now=NOW)


def test_a_refresh_adds_the_days_that_the_catalog_lacks(catalog: Engine, tmp_path: Path) -> None:
    with serving(lambda _: Response(zipped(HISTORY))) as url:
        first = run_rate_refresh(catalog, url=url, now=NOW)
        assert (first.days, first.rates) == ([date(2025, 12, 31), date(2026, 1, 2)], 5)
        assert first.outcome is not None
        assert first.outcome.new_revision
        again = run_rate_refresh(catalog, url=url, now=NOW)
        assert (again.days, again.outcome) == ([], None)
    saved = tmp_path / "eurofxref.csv"
    saved.write_bytes(ONE_DAY)
    later = run_rate_refresh(catalog, file=saved, now=NOW)
    assert later.days == [date(2026, 1, 5)]
    assert later.outcome is not None
    assert later.outcome.summary.changes["exchange_rate"].added == 2
    assert later.outcome.summary.changes["exchange_rate"].removed == 0


@pytest.mark.first_database
def test_a_dry_run_writes_nothing(catalog: Engine) -> None:
    with serving(lambda _: Response(zipped(HISTORY))) as url:
        run_rate_refresh(catalog, url=url, now=NOW, dry_run=True)
        assert run_rate_refresh(catalog, url=url, now=NOW, dry_run=True).rates == 5


@pytest.mark.first_database
def test_a_server_that_fails_is_asked_again_and_then_named(catalog: Engine) -> None:
    with serving(lambda before: Response(zipped(HISTORY), 200 if before else 503)) as url:
        assert run_rate_refresh(catalog, url=url, now=NOW, policy=QUICK).rates == 5
    with (
        serving(lambda _: Response(status_code=404)) as url,
        pytest.raises(BadData, match=r"eurofxref-hist\.zip: 127\.0\.0\.1 answered 404"),
    ):
        run_rate_refresh(catalog, url=url, now=NOW, policy=QUICK)
