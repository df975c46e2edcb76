"""Reads what clients send beside JSON bodies: inventories of VMs, quotas."""
