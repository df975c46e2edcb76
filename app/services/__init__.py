"""Use cases that join the catalog with the arithmetic of app.fit."""
