"""Tracked files are publishable: no conflict markers, no empty files, no dead links between pages."""

import re
import subprocess
from pathlib import Path

import pytest

from app.settings import PROJECT
from tests.docs.pages import links, read

MARKER = re.compile(rb"^(<{7} |={7}$|>{7} |\|{7} )", re.MULTILINE)
MAY_BE_EMPTY = {"__init__.py", "py.typed"}


def tracked(pattern: str = "*") -> list[Path]:
    """Return the tracked files that exist; skips the test outside a repository, as in an unpacked archive."""
    listed = subprocess.run(["git", "ls-files", "-z", pattern], cwd=PROJECT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: the files of the project are unknown")
    paths = [PROJECT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_tracked_file_has_conflict_markers() -> None:
    assert not [str(path) for path in tracked() if MARKER.search(path.read_bytes())]


def test_no_tracked_file_is_empty_unless_its_name_is_its_content() -> None:
    assert not [str(path) for path in tracked() if not path.stat().st_size and path.name not in MAY_BE_EMPTY]


def test_every_relative_link_of_a_markdown_file_leads_to_a_file() -> None:
    found = [
        f"{page.relative_to(PROJECT)}: {target}"
        for page in tracked("*.md")
        for target in links(read(page))
        if not re.match(r"[a-z]+:|#|/", target) and not (page.parent / target.partition("#")[0]).exists()
    ]
    assert not found


def test_the_marker_of_a_conflict_is_told_from_a_line_under_a_heading() -> None:
    assert MARKER.search(b"a\n" + b"<" * 7 + b" HEAD\n")
    assert MARKER.search(b"a\n" + b"=" * 7 + b"\nb\n")
    assert not MARKER.search(b"Title\n" + b"=" * 5 + b"\n" + b"=" * 8 + b"\n")
