"""Suites that any store, labeler or consolidator can be run against, by overriding one fixture."""
