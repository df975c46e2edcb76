"""Formats: rows of typed columns as bytes of a file, block by block; knows no HTTP and no database."""
