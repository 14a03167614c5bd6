"""The test suite. One folder per layer; `acceptance` and `browser` see the whole."""
