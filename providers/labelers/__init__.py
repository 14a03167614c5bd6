"""Labelers: each reads comments and names category, theme and observation; protocol in `learning_core.plugins`."""
