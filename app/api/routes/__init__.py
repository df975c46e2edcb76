"""The endpoints, one module per group of resources."""
