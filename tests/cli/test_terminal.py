"""Output on a terminal of 80 columns, and the ways in which arguments may be written."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.cli import main
from app.cli.commands import COMMAND_MODULES, SYNONYMS, unknown_command_message
from app.settings import PROJECT
from tests.cli.conftest import Run
from tests.command_line import CommandResult, run_on_terminal
from tests.price_changes import ingest_a_price_that_rises

PROGRAM = str(Path(sys.executable).with_name("vmsizes"))
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
Terminal = Callable[..., list[str]]


pytestmark = pytest.mark.one_database  # one kind of database: output does not depend on it


def environment(url: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return {**kept, "VMSIZES_DATABASE_URL": url, "TERM": "xterm"}


PAIR = ("nc24ads_a100_v4", "nc40ads_h100_v5")


@pytest.fixture
def terminal(seeded_url: str) -> Terminal:
    """Run the command line on a terminal, and give the lines that it shows."""

    def run(*arguments: str, columns: int = 80, url: str = seeded_url) -> list[str]:
        shown = ESCAPE.sub("", run_on_terminal(url, *arguments, columns=columns))
        assert "Traceback" not in shown, shown
        return shown.splitlines()

    return run


def ask(url: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], env={**environment(url), **more}, capture_output=True, text=True, check=False
    )


NAMES = {
    "search": ("search",),
    "search_of_long_names": ("search", "RTX PRO 6000"),
    "fit_of_needs": ("fit", "--min-gpu-mem", "320", "--region", "eastus"),
    "fit_of_a_model": ("fit", "llama-3.3-70b", "--context", "8k"),
    "similar": ("similar", "nc24ads_a100_v4"),
    "compare": ("compare", "nc24ads_a100_v4", "nc40ads_h100_v5", "nd96isr_h100_v5"),
    "estimate": ("estimate", "llama-3.1-8b", "--context", "8k"),
    "models": ("models",),
    "conflicts": ("conflicts",),
    "facts": ("show", "nd40rs_v2", "--facts"),
    "history": ("history", "nc24ads_a100_v4", "--region", "eastus"),
    "every_price": ("show", "nc24ads_a100_v4", "--prices"),
}


@pytest.mark.parametrize("arguments", NAMES.values(), ids=NAMES)
def test_nothing_is_wider_than_the_terminal_and_no_value_is_cut(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    lines = [line for line in terminal(*arguments) if not line.startswith("More: --cursor")]
    assert [line for line in lines if len(line) > 80] == []
    assert "…" not in "\n".join(lines)
    assert "..." not in "\n".join(lines)


@pytest.mark.parametrize("names", [("f8s_v2", "b2s"), ("nv12s_v3", "m192idms_v2", "f8s_v2")])
def test_a_plan_has_its_money_whatever_else_is_left_out(
    terminal: Terminal, tmp_path: Path, names: tuple[str, ...]
) -> None:
    inventory = tmp_path / "vms.csv"
    rows = (f"{name}-of-the-web-frontend,{name},eastus,20\n" for name in names)
    inventory.write_text("id,size,region,count\n" + "".join(rows), encoding="utf-8")
    lines = terminal("retirements", str(inventory))
    shown = "\n".join(lines)
    assert [line for line in lines if len(line) > 80] == []
    assert all(heading in shown for heading in ("USD/h", "then", "+/- USD/month"))
    assert "627.8" in shown  # (0.381 - 0.338) USD x 20 VMs x 730 hours


@pytest.mark.parametrize(("purchase", "heading"), [("spot", "spot USD/h"), ("savings_3y", "savings 3y USD/h")])
def test_the_price_that_is_asked_for_comes_first(terminal: Terminal, purchase: str, heading: str) -> None:
    first = terminal("search", "A100", "--purchase", purchase)[0]
    assert re.sub(r"\x1b\[\d*m| +", " ", first).strip().startswith(f"size {heading}")


def test_a_price_and_a_name_are_whole_however_narrow_the_terminal_is(terminal: Terminal) -> None:
    wide = ask_columns(terminal("search", "H100", columns=200))
    assert wide
    for columns in (60, 24):
        shown = " ".join(terminal("search", "H100", columns=columns)).split()
        assert all(name in shown and price in shown for name, price in wide)


def ask_columns(lines: list[str]) -> list[tuple[str, str]]:
    at = lines[0].split("  ")
    headings = [heading.strip() for heading in at if heading.strip()]
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[1:] if line.startswith("Standard_")]
    return [(row[0], row[headings.index("USD/h")]) for row in rows]


def test_columns_left_out_are_named_and_wide_shows_them(terminal: Terminal) -> None:
    output = " ".join(terminal("search", "H100"))
    assert "Left out at 80 columns: " in output
    assert "spot USD/h" in output.partition("Left out")[2]
    assert "spot USD/h" in terminal("search", "H100", "--wide")[0]


@pytest.mark.parametrize(
    ("size", "arguments"),
    [
        ("NG8", ("search", "A100")),
        ("NG8", ("search", "A100", "--columns", "vcpus,name")),
        ("ND24", ("fit", "--min-gpus", "4", "--gpu", "V100", "--min-gpu-mem", "64")),
        ("NG8", ("similar", "nc24ads_a100_v4")),
        ("NG8", ("compare", "ng8", "nc24ads_a100_v4", "--columns", "vcpus")),
        ("Standard_NV6_Promo", ("retirements", "--past", "--limit", "500")),
    ],
)
def test_sizes_that_are_not_verified_are_marked_at_80_columns(
    terminal: Terminal, size: str, arguments: tuple[str, ...]
) -> None:
    lines = terminal(*arguments)
    marked = re.compile(rf"(^|\s){size}\*(\s|$)")
    assert any(marked.search(line) for line in lines), lines
    assert sum(line.startswith("* Not verified: ") for line in lines) == 1
    assert "* Not verified: " not in "\n".join(terminal(*arguments, "--csv"))


def test_a_table_of_verified_sizes_has_no_mark(terminal: Terminal) -> None:
    assert "*" not in "\n".join(terminal("search", "H200"))


def test_chosen_columns_are_shown_in_their_order_whole(terminal: Terminal, run: Run, seeded_url: str) -> None:
    names = "spot_usd_per_hour,name,gpu_interconnect,cpu_model,source_url,series"
    assert terminal("search", "H100", "--columns", names)[0].split() == names.split(",")
    done = run(seeded_url, "fit", "llama-3.1-8b", "--columns", "size,per_gpu.need.mid", "--csv")
    assert done.stdout.splitlines()[0] == "size,per_gpu.need.mid"
    assert "Standard_" in done.stdout.splitlines()[1]
    wrong = run(seeded_url, "search", "--columns", "gpu_modle")
    assert (wrong.returncode, "did you mean gpu_model?" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("size", ["nd96isr_h100_v5", "nc24ads_a100_v4"])
def test_a_size_fits_two_screens_and_begins_with_gpu_memory_and_price(terminal: Terminal, size: str) -> None:
    lines = terminal("show", size)
    assert len(lines) <= 48
    assert [line for line in lines if len(line) > 80 and not line.startswith("https://")] == []
    head = " ".join(lines[:5])
    assert re.search(r"GPU +\d+ x NVIDIA .* GiB in all", head)
    assert re.search(r"Price +[\d.]+ USD/h on demand", head)


def test_changes_fit_80_columns(terminal: Terminal, engine: Engine, database_url: str) -> None:
    ingest_a_price_that_rises(engine)
    heading, line, *_ = lines = terminal("changes", "--region", "westeurope", url=database_url)
    assert max(map(len, lines)) <= 80
    assert heading.split()[:4] == ["on", "kind", "size", "region"]
    assert line.split()[-3:] == ["3.5", "3.673", "+4.9"]


def test_lists_that_agree_on_a_price_are_one_line_of_its_history(terminal: Terminal) -> None:
    output = terminal("history", "nc24ads_a100_v4", "--region", "westeurope")
    assert [line.split() for line in output[:4]] == [
        ["since", "last", "seen", "USD/h", "lists"],
        ["2023-10-27", "2026-08-22", "4.775", "azure-pricing-radar-westeurope-2026-08-22;"],
        ["azure-sku-locator-prices-2026-08-01;"],
        ["karpenter-azure-prices"],
    ]
    assert "1 price in westeurope, the oldest first. In force on" in " ".join(output)


@pytest.mark.takes_seconds
def test_a_pipe_gets_every_column_of_the_table(seeded_url: str) -> None:
    head, *_ = ask(seeded_url, "search", "H100", COLUMNS="40").stdout.splitlines()
    assert {"vCPUs", "status", "region"} <= set(head.split())
    assert head.endswith("spot as of")


@pytest.mark.parametrize("command", ["", *COMMAND_MODULES, "export sizes"])
def test_help_shows_the_whole_name_of_every_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["vmsizes", *command.split(), "-h"])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert not any(line.rstrip().endswith("...") for line in lines[1:])
    assert not any("…" in line for line in lines if line.lstrip().startswith("-"))
    if command == "search":
        assert "  --memory-preserving-updates / --no-memory-preserving-updates" in lines
        assert any("--os linux|windows" in line for line in lines)
        assert any("usd_per_gpu_hour" in line for line in lines)


def test_the_version_is_printed(seeded_url: str) -> None:
    assert re.fullmatch(r"vmsizes \d+\.\d+\.\d+\n", ask(seeded_url, "--version").stdout)


def names(done: CommandResult) -> list[str]:
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[1:]


@pytest.mark.takes_seconds
def test_a_search_takes_a_gpu_as_others_write_it(run: Run, seeded_url: str) -> None:
    only = ("--columns", "name", "--csv")
    by_filter = names(run(seeded_url, "search", "--gpu", "H100", "--min-gpus", "8", "--max-gpus", "8", *only))
    assert by_filter
    assert names(run(seeded_url, "search", "H100:8", *only)) == by_filter
    assert names(run(seeded_url, "search", "h100", "--gpus", "8", *only)) == by_filter
    by_name = names(run(seeded_url, "search", "--gpu", "A100-80GB", *only))
    assert "Standard_NC24ads_A100_v4" in by_name
    assert names(run(seeded_url, "search", "A100-80GB", *only)) == by_name
    eighty = names(run(seeded_url, "search", "A100 80GB", "--columns", "name,gpu_model", "--csv"))
    assert eighty
    assert all("40GB" not in cell for cell in eighty)
    assert names(run(seeded_url, "search", "nd96isr", *only))
    refused = run(seeded_url, "search", "H999:8")
    assert (refused.returncode, "H999" in refused.stderr) == (2, True)


def test_amounts_are_written_as_people_write_them(run: Run, seeded_url: str) -> None:
    done = run(seeded_url, "estimate", "llama-3.1-8b", "--context", "32k", "--dtype", "INT8", "--json")
    plain = run(seeded_url, "estimate", "--model", "llama-3.1-8b", "--context", "32768", "--dtype", "int8", "--json")
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    trained = ("estimate", "llama-3.1-8b", "--train", "--sequence", "4k", "--json", "--tokens")
    assert run(seeded_url, *trained, "100M").stdout == run(seeded_url, *trained, "1e8").stdout != ""
    refused = run(seeded_url, "estimate", "llama-3.1-8b", "--dtype", "4bit")
    assert (refused.returncode, "awq_int4, gptq_int4" in " ".join(refused.stderr.split())) == (2, True)
    assert run(seeded_url, "estimate", "llama-3.1-8b", "--context", "a lot").returncode == 2


@pytest.mark.takes_seconds
def test_status_and_words_narrow_a_fit_of_a_model(run: Run, seeded_url: str) -> None:
    only = ("fit", "llama-3.1-8b", "--limit", "500", "--columns", "size,status", "--csv")
    every, current = names(run(seeded_url, *only)), names(run(seeded_url, *only, "--status", "current", "--verified"))
    assert {row.partition(",")[2] for row in current} == {"current"}
    assert set(current) <= set(every)
    narrowed = names(run(seeded_url, *only, "--q", "h100"))
    assert 0 < len(narrowed) < len(every)
    assert all("H100" in row for row in narrowed)
    refused = run(seeded_url, *only, "--status", "retired")
    assert (refused.returncode, "--status=retired" in refused.stderr) == (2, True)


@pytest.mark.parametrize(("name", "hint"), [
    ("list", "vmsizes search"), ("gpus", "vmsizes export gpus"), ("show-gpus", "vmsizes export gpus"),
    ("regions", "vmsizes export regions"), ("serach", "Did you mean search?"), ("frobnicate", ""),
])  # fmt: skip
def test_an_unknown_command_suggests_the_one_that_was_meant(name: str, hint: str) -> None:
    text = unknown_command_message(name)
    assert text.startswith(f"No such command '{name}'.")
    assert hint in text
    assert ("Did you mean" in text or "Try" in text) == bool(hint)
    assert not set(SYNONYMS) & set(COMMAND_MODULES)


@pytest.fixture
def complete(run: Run, monkeypatch: pytest.MonkeyPatch, seeded_url: str) -> Callable[[str], set[str]]:
    """Complete a line as bash asks for it."""

    def complete(line: str) -> set[str]:
        monkeypatch.setenv("_VMSIZES_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        return set(run(seeded_url).stdout.split())

    return complete


def test_the_shell_completes_words_and_names(complete: Callable[[str], set[str]]) -> None:
    assert complete("vmsizes search --os ") == {"linux", "windows"}
    assert complete("vmsizes search --purchase s") == {"spot", "savings_1y", "savings_3y"}
    assert complete("vmsizes search --status current,ret") == {"current,retiring", "current,retired"}
    assert complete("vmsizes search --sort usd_per_h") == {"usd_per_hour"}
    assert complete("vmsizes search --arch x") == {"x64"}
    assert complete("vmsizes fit --dtype nv") == {"nvfp4"}
    assert "llama-3.3-70b" in complete("vmsizes fit llama-3.3")
    assert complete("vmsizes search --region westeu") == {"westeurope"}
    assert complete("vmsizes show NC24ads") == {"NC24ads_A100_v4"}
    assert "similar" in complete("vmsizes si")


MALFORMED = [
    *("postgresql:/u:secret@h/x", "u:secret@h/x", "secret", "u:secret://h/x", "postgresql://u:secret@h:port/x"),
    *("postgresql://u:p@secret@h/x", "postgresql://u:secret@h:1,h2:z/x", "postgresql://u:sec,ret/secret@h/x"),
]
"""URLs that hold the password `secret` in places where only a person sees it."""


@pytest.mark.parametrize("url", MALFORMED)
@pytest.mark.parametrize(
    "arguments", [("search",), ("migrate",), ("ingest", "seeds"), ("webhooks", "list"), ("serve",)]
)
def test_a_malformed_url_of_a_database_is_told_without_its_password(
    run: Run, url: str, arguments: tuple[str, ...]
) -> None:
    done = run(url, *arguments)
    assert done.returncode == 2, done.stderr
    assert "VMSIZES_DATABASE_URL" in done.stderr
    assert "postgresql://USER:PASSWORD@HOST:PORT/NAME" in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr + done.stdout


@pytest.mark.takes_seconds
@pytest.mark.parametrize(("url", "code", "message"), [
    ("postgresql+asyncpg://u:secret@localhost/x", 2, "write postgresql://"),
    ("mysql://u:secret@localhost/x", 2, "allowed are sqlite:///FILE"),
    ("postgresql://nobody@127.0.0.1:1/x", 4, "Check that postgresql"),
    ("sqlite:////no/such/folder/x.db", 4, "There is no folder /no/such/folder"),
])  # fmt: skip
def test_a_database_that_cannot_be_used_is_a_message(url: str, code: int, message: str) -> None:
    done = ask(url, "search")
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    assert "vmsizes migrate" not in done.stderr


def _tables_of_another_program(file: Path) -> int:
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("create table size (id int)").rowcount


@pytest.mark.parametrize(("make", "message"), [
    (lambda file: file.write_text("text " * 1000), "its file is not a database (…); correct VMSIZES_DATABASE_URL"),
    (lambda file: os.truncate(file, file.stat().st_size // 3), "its file is damaged (…); restore a copy"),
    (lambda file: file.unlink() or file.mkdir(), "its path leads to no file (…); give a file"),
    (_tables_of_another_program, "it has tables of another program"),
])  # fmt: skip
def test_what_is_wrong_with_a_file_is_a_message_with_its_own_remedy(
    run: Run, tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    file = tmp_path / "x.db"
    assert run(f"sqlite:///{file}", "migrate").returncode == 0
    make(file)
    done = run(f"sqlite:///{file}", "migrate")
    assert done.returncode == 4
    assert f"The database cannot be used: {message}" in re.sub(r"\([^)]*\)", "(…)", done.stderr)
    doctor = run(f"sqlite:///{file}", "doctor", "--json")
    found = {row["check"]: row for row in json.loads(doctor.stdout)}
    assert doctor.returncode == 4
    if "; " in message:
        assert found["database"]["next"].startswith(message.partition("; ")[2])


def test_a_place_that_cannot_be_written_is_a_message(run: Run, seeded_url: str, tmp_path: Path) -> None:
    for place, message in ((tmp_path / "no" / "x.csv", "does not exist"), (tmp_path, "is a folder")):
        for form in ("csv", "parquet"):
            done = run(seeded_url, "export", "sizes", "--format", form, "-o", str(place))
            assert (done.returncode, message in done.stderr, done.stdout) == (2, True, ""), done.stderr


@pytest.mark.parametrize("source", ["--port", "VMSIZES_PORT"])
def test_a_port_in_use_is_an_error_before_anything_is_served(
    run: Run, seeded_url: str, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        monkeypatch.setenv("VMSIZES_PORT", port if source == "VMSIZES_PORT" else "1")
        done = run(seeded_url, "serve", *(["--port", port] if source == "--port" else []))
    assert (done.returncode, "Serving" in done.stdout, "choose another" in done.stderr) == (2, False, True)
    assert f"{source}={port}: " in done.stderr
    monkeypatch.setenv("VMSIZES_HOST", "nosuch.invalid")
    assert "VMSIZES_HOST=nosuch.invalid: is not an address" in run(seeded_url, "serve").stderr


def test_make_run_says_that_its_port_is_taken_before_it_sets_anything_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = ("make", ".port-is-free", f"PORT={port}", f"PYTHON={sys.executable}")
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (done.returncode, f"port {port} is taken; choose another: make run PORT={port + 1}" in done.stderr) == (
        2,
        True,
    )
    assert subprocess.run(command, cwd=PROJECT, capture_output=True, check=False).returncode == 0
    steps = subprocess.run(("make", "-n", "run"), cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    assert steps.index("is taken") < steps.index("vmsizes migrate")


@pytest.mark.parametrize("arguments", [("search", "A100"), ("ingest", "seeds"), ("sources",)])
def test_a_mistyped_path_of_a_database_leaves_no_file(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    missing = tmp_path / "mistyped.db"
    done = run(f"sqlite:///{missing}", *arguments)
    assert done.returncode == 4
    assert f"There is no database file {missing}; correct VMSIZES_DATABASE_URL, or run `vmsizes migrate`" in done.stderr
    assert not missing.exists()


def test_errors_name_options_and_commands(run: Run, seeded_url: str) -> None:
    region = run(seeded_url, "search", "--region", "nowhere").stderr
    assert "--region=nowhere" in region
    assert "`vmsizes export regions` lists them" in region
    model = run(seeded_url, "estimate", "--context", "8k").stderr
    assert "without MODEL or --config" in model
    assert "architecture" not in model


@pytest.mark.parametrize(
    "arguments",
    [("compare", *PAIR), ("compare", *PAIR, "d4s_v5"), ("buy", PAIR[0], "--region", "westeurope", "--months", "24")],
)
def test_rows_stand_in_one_table_of_80_columns(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    heads = [line for line in terminal(*arguments) if line.startswith(("field ", "purchase "))]
    assert len(heads) == 1


def test_one_size_that_fits_is_counted_in_the_singular(run: Run, seeded_url: str) -> None:
    sizes = "Standard_ND96isr_MI300X_v5,Standard_NC24ads_A100_v4,Standard_NC40ads_H100_v5"
    one = run(seeded_url, "fit", "kimi-k2", "--context", "8k", "--name", sizes).stdout
    assert "\n1 size fits, " in one
    assert " do not (" in one


def test_a_column_without_a_value_takes_no_room_from_another(seeded_url: str) -> None:
    shown = run_on_terminal(seeded_url, "fit", "llama-3.3-70b", "--context", "8k", columns=80)
    assert "USD/M tokens" in shown.partition("Left out at 80 columns")[2]
    assert "hours" not in shown, "what training takes"


def test_columns_that_are_left_out_have_names_of_their_own(seeded_url: str) -> None:
    shown = run_on_terminal(seeded_url, "conflicts", columns=80)
    left_out = re.search(r"Left out at 80 columns: ([^.]+)\.", " ".join(shown.split()))
    assert left_out is not None
    names = left_out[1].split(", ")
    assert len(names) == len(set(names)) > 1
