"""Scripts that measure the numbers in the design; each prints its raw floor beside the result."""
