"""A repository's turn, taken by a job: at any time at most one process works on a learning store through the Hub.

1. The turn is the lock of `providers.turn`, on a file in the store's directory. It cannot expire, and it ends with the
   process that holds it, however that ends. The command takes the same one.
2. A job takes the turn without waiting. If it is taken, whoever holds it looks at the queue after letting go, so a
   step that was asked for before a job found the turn taken is not lost.
3. Due steps run in order of urgency; the queue is read again after each. What is asked for meanwhile joins in.
4. After letting go, look again and wake a successor. If the process dies in between, the sweep does.

Steps are idempotent, so a step that was interrupted simply runs again.

Source: design.md, decision 7.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from django.utils import timezone

from hub_learning import steps, stores, wakeups
from hub_learning.models import Step
from learning_core.errors import Busy

TURN_SECONDS = 20.0
"""A turn that has taken so long lets others have the worker. A step that has begun is finished first."""


def run_turn(repository_id: int, run_step: Callable[[Step], None], *, seconds: float = TURN_SECONDS) -> None:
    """Take the turn and run due steps until none is due or the time is up. A taken turn ends it at once.

    `run_step` marks the step done or failed and does not raise for a failure of the step.
    """
    ends = time.monotonic() + seconds
    try:
        with stores.take_turn(repository_id):
            while time.monotonic() < ends:
                step = steps.next_step(repository_id, timezone.now())
                if step is None:
                    break
                run_step(step)
    except Busy:
        return
    if steps.has_due_steps(repository_id, timezone.now()):
        wakeups.send_wakeup(repository_id)
