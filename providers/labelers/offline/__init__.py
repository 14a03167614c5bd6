"""The offline labeler: themes from a data file, found by phrases; deterministic, local, no network, no model."""

from providers.labelers.offline.labeler import create_labeler

__all__ = ["create_labeler"]
