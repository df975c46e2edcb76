"""`make audit`: known vulnerabilities, licences and a bill of materials of the locked dependencies.

Exits with 1 for a known vulnerability or a licence that is not allowed. What could not be looked up is counted and
said; with --strict that fails, too.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from app.settings import PROJECT
from tests.audit.licences import EXCEPTIONS, check_licences, pins
from tests.audit.sbom import LONGEST_SECONDS, TOOLS, write_sbom

LOCKS = ("requirements.lock", "requirements-dev.lock")
KUBERNETES = PROJECT / "docs" / "deploy" / "kubernetes"
SBOM = PROJECT / "build" / "sbom.cdx.json"


def audit_vulnerabilities(lock: str) -> tuple[int, int, list[str]]:
    """Return how many packages of a lock were looked up, how many were not, and the known vulnerabilities.

    pip-audit asks PyPI. It exits with 0 also where it found no package there, so its report is counted here.
    """
    command = [str(TOOLS / "pip-audit"), "--requirement", str(PROJECT / lock), "--disable-pip", "--require-hashes"]
    command += ["--format", "json", "--progress-spinner", "off", "--timeout", "15"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)
        report: Mapping[str, Any] = json.loads(done.stdout)
    except (json.JSONDecodeError, subprocess.TimeoutExpired):
        return 0, len(pins(PROJECT / lock)), []
    looked_up = [each for each in report["dependencies"] if "skip_reason" not in each]
    found = [
        f"{each['name']} {each['version']}: {known['id']}, fixed in {', '.join(known['fix_versions']) or 'no version'}"
        for each in looked_up
        for known in each["vulns"]
    ]
    return len(looked_up), len(pins(PROJECT / lock)) - len(looked_up), found


def validate_kubernetes() -> list[str]:
    """Return what of the files in docs/deploy is wrong by the schemas of Kubernetes, which the tool brings."""
    files = sorted(str(path) for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml")
    command = [str(TOOLS / "kubernetes-validate"), "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    wrong = [line for line in lines if not line.startswith("INFO")]
    return wrong or ([] if done.returncode == 0 else ["kubernetes-validate failed"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strict", action="store_true", help="fail also where something could not be looked up")
    arguments = parser.parse_args()
    failed = missing = 0
    for lock in LOCKS:
        looked_up, not_looked_up, vulnerabilities = audit_vulnerabilities(lock)
        for line in vulnerabilities:
            print(f"vulnerable: {line}")
        print(f"vulnerabilities, {lock}: {len(vulnerabilities)} known in {looked_up} packages", end="")
        print(f"; {not_looked_up} NOT CHECKED: PyPI cannot be reached, or does not have them" if not_looked_up else "")
        failed, missing = failed + len(vulnerabilities), missing + not_looked_up
    findings = list(check_licences(PROJECT / "requirements-dev.lock"))
    for each in findings:
        if each.problem:
            print(f"licence: {each.package} {each.version}: {each.problem}")
            failed += 1
    print(f"licences: {len(findings)} packages, {dict(Counter(each.licence for each in findings).most_common(4))}, …")
    for name, reason in EXCEPTIONS.items():
        print(f"  exception: {name}: {reason}")
    print(f"bill of materials: {write_sbom(SBOM)} components in {SBOM.relative_to(PROJECT)} (CycloneDX 1.6)")
    wrong = validate_kubernetes()
    for line in wrong:
        print(f"kubernetes: {line}")
    print(f"kubernetes: {len(list(KUBERNETES.glob('*.yaml'))) - 1} files, {len(wrong)} errors")
    failed += len(wrong)
    return 1 if failed or (arguments.strict and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
