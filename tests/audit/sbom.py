"""The bill of materials of an installation: locked packages, and what the pages' bundle is made of."""

import json
import re
import subprocess
from importlib.metadata import distributions
from pathlib import Path

from app.settings import PROJECT
from tests.audit.licences import licence_of, normalized

TOOLS = PROJECT / ".venv" / "audit" / "bin"
LONGEST_SECONDS = 300
_BUNDLED = re.compile(r"^(?P<name>\S+) (?P<version>\d\S*): (?P<licence>\S+)$", re.MULTILINE)
"""The line of a package in the licences of the bundle."""


def write_sbom(path: Path) -> int:
    """Write the bill of materials as CycloneDX 1.6, with licences; returns its number of components."""
    path.parent.mkdir(exist_ok=True)
    command = [str(TOOLS / "cyclonedx-py"), "requirements", str(PROJECT / "requirements.lock")]
    command += ["--pyproject", str(PROJECT / "pyproject.toml"), "--mc-type", "application"]
    command += ["--spec-version", "1.6", "--output-reproducible", "--output-format", "JSON", "--output-file", str(path)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=LONGEST_SECONDS)
    document = json.loads(path.read_text())
    installed = {normalized(package.metadata["Name"]): package for package in distributions()}
    for component in document["components"]:
        package = installed.get(normalized(component["name"]))
        if package is not None and (licence := licence_of(package)):
            component["licenses"] = [{"expression": licence}]
    document["components"] += bundled_components()
    path.write_text(json.dumps(document, indent=1) + "\n")
    return len(document["components"])


def bundled_components() -> list[dict[str, object]]:
    """Return the npm packages in the scripts and fonts of the pages; none where they are not bundled."""
    licences = PROJECT / "app" / "web" / "static" / "dist" / "licences.txt"
    if not licences.exists():
        return []
    return [
        {
            "type": "library",
            "bom-ref": f"npm-{package['name']}",
            "name": package["name"],
            "version": package["version"],
            "purl": f"pkg:npm/{package['name'].replace('@', '%40')}@{package['version']}",
            "licenses": [{"expression": package["licence"]}],
        }
        for package in _BUNDLED.finditer(licences.read_text(encoding="utf-8"))
    ]
