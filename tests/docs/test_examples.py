"""Every example of the documentation is done as a reader does it, and prints what the page says."""

import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import httpx
import pytest

from app.settings import PROJECT
from tests.command_line import run_command
from tests.docs.matching import matches
from tests.docs.pages import PAGES, Example, examples, read

WORKED_INGEST = PROJECT / "docs" / "ingest.md"
"""The one page whose examples change a catalog; they begin with an empty database."""
SERVED = "http://127.0.0.1:8000"
JSON = {"content-type": "application/json"}
"""The header that `curl --json` sends."""
WEBHOOKS = PROJECT / "docs" / "webhooks.md"
"""A page whose examples need a receiver: `test_webhooks.py` runs them."""
PAGES_WITH_EXAMPLES = [page for page in PAGES if page not in (WORKED_INGEST, WEBHOOKS) and any(examples(read(page)))]
LONG = 4000
PROGRESS_LINE = re.compile(
    r"^(facts|prices|writing prices|price lists|offers|digest|statistics|revision|reading \S+)"
    r"(: [\d,]+ rows(, [\d,]+ rows/s)?)?(, \d+%)?(, \d+ (s|min) left)?\n",
    re.MULTILINE,
)
"""What `vmsizes ingest` prints of its progress after some seconds; `revision 1 (new)` is none of it."""
JQ = shutil.which("jq") or ""


@pytest.mark.takes_seconds
@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_give_their_output(
    page: Path, seeded_url: str, client: httpx.Client, tmp_path: Path
) -> None:
    if "| jq " in read(page) and not JQ:
        pytest.skip("the examples of this page pipe into jq, which is not installed")
    (tmp_path / "seeds").symlink_to(PROJECT / "seeds")
    for step in examples(read(page)):
        check(step, page, run_example(step, tmp_path, seeded_url, client))


@pytest.mark.slow
def test_the_worked_ingest_gives_its_output(
    empty_url: str, client: httpx.Client, few_size_seeds: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VMSIZES_SEEDS", str(few_size_seeds))
    for step in examples(read(WORKED_INGEST)):
        check(step, WORKED_INGEST, run_example(step, tmp_path, empty_url, client))


def run_example(step: Example, folder: Path, url: str, client: httpx.Client) -> str:
    """Save a file, send a request, or run a program; returns what a terminal would show."""
    if step.file:
        written = (
            step.text.replace(SERVED, str(client.base_url).rstrip("/")) if step.file.endswith(".py") else step.text
        )
        (folder / step.file).write_text(written, encoding="utf-8")
        return step.text
    words = shlex.split(step.command)
    first, then = (words[: words.index("|")], words[words.index("|") + 1 :]) if "|" in words else (words, [])
    shown = request(first[1:], client) if first[0] == "curl" else run(first, folder, url)
    return run(then, folder, url, stdin=shown) if then else shown


def request(arguments: list[str], client: httpx.Client) -> str:
    """Send the request of a curl command and return the body."""
    where = arguments[-1].removeprefix(SERVED)
    if "--json" in arguments:
        return client.post(where, content=arguments[arguments.index("--json") + 1], headers=JSON).text
    return client.get(where).text


def run(words: list[str], folder: Path, url: str, stdin: str = "") -> str:
    """Run vmsizes, a Python script or jq; returns its output, without lines of progress: a busy machine has them."""
    program, *arguments = words
    if program == "vmsizes":
        shown = run_command(url, *arguments, folder=folder, merged=True).stdout
        return PROGRESS_LINE.sub("", shown) if arguments[0] in ("ingest", "forget") else shown
    if program == "python" and arguments[0] != "-m":
        return run_script(arguments, folder)
    programs = {"jq": JQ, "python": sys.executable}
    assert program in programs, f"an example can run curl, vmsizes, python and jq, not {program}"
    done = subprocess.run(
        [programs[program], *arguments],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        cwd=folder,
    )
    return done.stdout


def run_script(arguments: list[str], folder: Path) -> str:
    """Run a Python script in this process, which has imported what takes longer than the script does."""
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(output):
        patch.chdir(folder)
        patch.setattr(sys, "argv", arguments)
        runpy.run_path(arguments[0], run_name="__main__")
    return output.getvalue()


def check(step: Example, page: Path, output: str) -> None:
    if not matches(step.text, output):
        shortened = output if len(output) < LONG else f"{output[:LONG]} …"
        pytest.fail(f"{page.relative_to(PROJECT)}:{step.line}: $ {step.command}\n{shortened}", pytrace=False)
