"""Typed searches of the catalog, from parameters to rows; all of its SQL for reading is built here."""
