"""All that plugs into the core: stores, labelers, consolidators, their conformance suites, the console script."""
