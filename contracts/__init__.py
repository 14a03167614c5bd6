"""The normative version 1 contracts: JSON Schemas, examples, invalid records and vectors.

Nothing here but data and the way to find it. Other languages read the same files.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

V1: Traversable = files(__name__) / "v1"
"""The folder of the version 1 contracts: `*.schema.json`, `examples/`, `invalid/`, `vectors/`."""
