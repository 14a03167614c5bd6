"""The pages: views that ask the store, pure functions that put its answers into words, and the forms."""
