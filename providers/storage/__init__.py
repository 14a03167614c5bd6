"""Stores: each keeps records and audit entries behind the protocol in `learning_core.provider`."""
