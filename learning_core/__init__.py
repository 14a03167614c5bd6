"""The framework-free core: what the records are and which rules hold between them."""
