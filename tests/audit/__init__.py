"""Audit of the dependencies: known vulnerabilities, licences, a bill of materials: `make audit`."""
