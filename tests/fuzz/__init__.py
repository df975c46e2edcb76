"""Fuzzing of everything that reads files: `python -m tests.fuzz --minutes 20`."""
