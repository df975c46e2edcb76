"""Sends change events to webhooks, by the convention of Standard Webhooks."""
