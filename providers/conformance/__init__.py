"""Suites that any store, labeler or consolidator can be run against, by overriding one fixture."""

import pytest

# The suites are modules, not test files: without this, a failed assertion would not say what it compared.
pytest.register_assert_rewrite(f"{__name__}.storage")
