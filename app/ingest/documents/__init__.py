"""Documentation pages to facts, as pure mappings; the files are read by `app.ingest.sources.documents`."""
