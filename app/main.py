"""ROOF: joins every room to one FastAPI app."""
