"""The offline labeler: themes from a data file, found by phrases; deterministic, local, no network, no model."""
