"""Domains made of other domains."""
