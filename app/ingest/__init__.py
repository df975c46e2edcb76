"""RECEIVE: read sources, map them to statements, and write them in one transaction."""
