"""What the store does, one workflow a module. Workflows never import each other.

A `plan_` function is pure: from checked evidence, the time and the actor it makes a `Plan`, or None where nothing is to
be stored. The store loads before it and commits after it.
"""
