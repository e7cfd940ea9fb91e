"""Decisions in production: one round at a time, durable and exact."""
