"""File formats: rows of typed columns as bytes, block by block, without HTTP or a database."""
