"""KEEP: take a reading in, write what differs, number the revision."""
