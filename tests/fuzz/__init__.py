"""Fuzzing of everything that reads files, and of pages, forms and tools: `python -m tests.fuzz --minutes 20`."""
