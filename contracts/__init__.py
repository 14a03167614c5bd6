"""The published contracts: JSON Schemas, examples, invalid records and vectors, as package data under `v1/`."""
