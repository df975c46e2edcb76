"""Mappings between app.schemas and the values of app.services; they know no HTTP."""
