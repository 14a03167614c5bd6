"""Random tokens, and the digests that the Hub keeps of them."""

from __future__ import annotations

import hashlib
import secrets


def new_token(prefix: str = "") -> str:
    """A token of 256 random bits."""
    return prefix + secrets.token_urlsafe(32)


def digest_token(token: str) -> str:
    """SHA-256 in hex. A token of 256 random bits needs no slower function."""
    return hashlib.sha256(token.encode()).hexdigest()
