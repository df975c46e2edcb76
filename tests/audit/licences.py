"""Licences of locked dependencies against an allow list."""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

ALLOWED = frozenset(
    {
        *("MIT", "MIT-0", "MIT-CMU", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC", "Apache-2.0", "PSF-2.0", "Zlib"),
        *("CC0-1.0", "Unlicense", "MPL-2.0"),
    }
)
"""SPDX identifiers: permissive ones, and MPL-2.0, which asks for the source of changed files of the library only."""

EXCEPTIONS: Mapping[str, str] = {
    "psycopg": "LGPL-3.0-only: used as it is, a library that its users can replace",
    "psycopg-binary": "LGPL-3.0-only: used as it is, a library that its users can replace",
    "psycopg-pool": "LGPL-3.0-only: used as it is, a library that its users can replace",
}
"""Packages whose licence is not in ALLOWED, with the reason why they may be used."""

ELSEWHERE: Mapping[str, str] = {"colorama": "BSD-3-Clause", "pywin32": "PSF-2.0"}
"""Licences of packages that are installed on Windows only, as their projects state them."""

_CLASSIFIERS = {
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
_LONGEST_NAME = 60
"""Of a licence, in characters; a longer text is the licence itself."""
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?P<marker>[^\n]*)", re.MULTILINE)
_NOWHERE = "sys_platform == 'emscripten'"
"""The marker of packages for Python inside a browser, where this project does not run."""


@dataclass(frozen=True, slots=True)
class LicenceFinding:
    """The licence of a package; `problem` is empty if it may be used."""

    package: str
    version: str
    licence: str
    problem: str = ""


def normalized(name: str) -> str:
    """Return the name of a package as PyPI compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lock: Path) -> dict[str, str]:
    """Return the version of each package in a lock."""
    found = [match for match in _PIN.finditer(lock.read_text()) if _NOWHERE not in match["marker"]]
    return {normalized(match["name"]): match["version"] for match in found}


def licence_of(distribution: Distribution) -> str:
    """Return the SPDX expression that a package states, or that its classifiers mean; empty if neither says it."""
    metadata = distribution.metadata.json
    if expression := metadata.get("license_expression"):
        return str(expression)
    listed = metadata.get("classifier") or []
    classifiers = [each.rpartition(" :: ")[2] for each in listed if each.startswith("License :: ")]
    if classifiers:
        return " OR ".join(sorted({_CLASSIFIERS.get(each, each) for each in classifiers}))
    text = str(metadata.get("license") or "").strip()
    return _CLASSIFIERS.get(text, text) if len(text) < _LONGEST_NAME else ""


def is_allowed(expression: str) -> bool:
    """Check an SPDX expression: one side of OR is enough, both sides of AND are needed."""
    tokens = deque(re.findall(r"\(|\)|[^\s()]+", expression))

    def parse_or() -> bool:
        return any(separated("OR", parse_and))

    def parse_and() -> bool:
        return all(separated("AND", parse_one))

    def separated(word: str, parse: Callable[[], bool]) -> list[bool]:
        found = [parse()]
        while tokens and tokens[0] == word:
            tokens.popleft()
            found.append(parse())
        return found

    def parse_one() -> bool:
        if not tokens:
            return False
        token = tokens.popleft()
        if token != "(":
            return token in ALLOWED
        found = parse_or()
        return bool(tokens) and tokens.popleft() == ")" and found

    return parse_or() and not tokens


def check_licences(lock: Path) -> Iterator[LicenceFinding]:
    """Yield the licence of each package in a lock."""
    installed = {normalized(each.metadata["Name"]): each for each in distributions()}
    for name, version in sorted(pins(lock).items()):
        if name in installed:
            licence, absent = licence_of(installed[name]), "states no licence that can be read"
        else:
            licence, absent = ELSEWHERE.get(name, ""), "is not installed here, and ELSEWHERE does not list it"
        problem = ""
        if not licence:
            problem = absent
        elif name not in EXCEPTIONS and not is_allowed(licence):
            problem = f"{licence} is not allowed"
        yield LicenceFinding(name, version, licence, problem)
