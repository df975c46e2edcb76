"""Tests of the tools and resources for agents, with the official client."""
