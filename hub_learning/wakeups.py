"""Wake-ups: RQ carries the ID of a repository whose turn has something to do, and nothing else.

A wake-up may be lost or doubled without harm: the steps stand in the Hub's database, and the sweep wakes what waits.
Jobs are JSON, never pickles, so that whoever can write to Redis cannot run code here.

Source: design.md, decision 7; `docs/adr/0003-turns.md`.
"""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.db import transaction
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from rq import Queue
from rq.serializers import JSONSerializer

QUEUE = "learning"
JOB = "hub_learning.jobs.run_turn_job"
JOB_SECONDS = 900
"""RQ stops a job that takes longer. A turn ends itself far earlier, but one import may be long."""
COALESCE_SECONDS = 5
"""While a wake-up waits, another for the same repository adds nothing. A lost one holds others back no longer."""


@cache
def connection() -> Redis:
    """This process's connections for wake-ups. They give up soon: a request must not wait for Redis, and need not."""
    return Redis.from_url(
        settings.HUB.redis_url, socket_connect_timeout=1, socket_timeout=2, retry=Retry(NoBackoff(), 1)
    )


def queue() -> Queue:
    """The one queue."""
    return Queue(QUEUE, connection=connection(), serializer=JSONSerializer, default_timeout=JOB_SECONDS)


def enqueue_turn(repository_id: int) -> None:
    """Wake a repository's turn when the running transaction commits (at once if none runs)."""
    transaction.on_commit(lambda: send_wakeup(repository_id))


def send_wakeup(repository_id: int) -> None:
    """Wake a repository's turn, unless a wake-up waits already. If Redis is away, the sweep will do it."""
    try:
        if connection().set(_waiting_key(repository_id), 1, nx=True, ex=COALESCE_SECONDS):
            queue().enqueue(
                JOB,
                repository_id,
                ttl=600,
                result_ttl=0,
                failure_ttl=3600,
                description=f"turn of repository {repository_id}",
            )
    except RedisError:
        return


def accept_wakeup(repository_id: int) -> None:
    """The woken job is about to look at the queue: whatever is asked for from now on needs a wake-up of its own."""
    try:
        connection().delete(_waiting_key(repository_id))
    except RedisError:
        return


def _waiting_key(repository_id: int) -> str:
    return f"learning:wakeup:{repository_id}"
