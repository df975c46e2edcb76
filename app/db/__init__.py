"""Database access: engines, compiled statements, query executors, streams, migrations; independent of the catalog."""
