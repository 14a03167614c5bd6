"""Consolidators: each turns labels into proposals; protocol in `learning_core.plugins`."""
