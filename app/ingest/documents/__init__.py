"""Documentation pages to facts: every module here is a pure mapping, reading files is `app.ingest.sources.documents`."""
