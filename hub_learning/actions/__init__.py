"""What changes the Hub: each `do_*` makes one change together with its security audit row."""

from __future__ import annotations

from hub_learning.actions.comments import Message, do_record_comments
from hub_learning.actions.hub import do_add_repository, do_choose_labeler, do_create_token, do_revoke_token
from hub_learning.actions.learnings import (
    do_accept,
    do_add_grant,
    do_disable,
    do_enable,
    do_reject,
    do_request_run,
    do_retire,
    do_supersede,
    do_withdraw_grant,
)

__all__ = [
    "Message",
    "do_accept",
    "do_add_grant",
    "do_add_repository",
    "do_choose_labeler",
    "do_create_token",
    "do_disable",
    "do_enable",
    "do_record_comments",
    "do_reject",
    "do_request_run",
    "do_retire",
    "do_revoke_token",
    "do_supersede",
    "do_withdraw_grant",
]
