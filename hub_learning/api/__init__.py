"""The JSON API for machines: review tools send comments, agents recall."""
