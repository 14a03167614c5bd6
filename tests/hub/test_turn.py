"""The durable queue of a repository's turn, and the turn itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from redis.exceptions import RedisError

from hub_learning import steps, stores, sweep, turn, wakeups
from hub_learning.models import Repository, Step
from hub_learning.steps import enqueue_step
from learning_core.errors import Busy

Kind, State = Step.Kind, Step.State


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The repositories whose turn was woken."""
    ids: list[int] = []
    monkeypatch.setattr(wakeups, "send_wakeup", ids.append)
    return ids


def done(step: Step) -> None:
    steps.mark_started(step, timezone.now())
    steps.mark_done(step, timezone.now())


def states(repository: Repository) -> dict[str, str]:
    rows = Step.objects.filter(repository=repository).order_by("urgency", "pk")
    return {f"{row.kind}{row.subject}": row.state for row in rows}


def test_steps_run_in_order_of_urgency(repository: Repository) -> None:
    for kind, subject in ((Kind.CONSOLIDATE, ""), (Kind.LABEL, ""), (Kind.IMPORT, ""), (Kind.REDACT, "b")):
        enqueue_step(repository, kind, subject)
    enqueue_step(repository, Kind.REDACT, "a")
    order: list[str] = []

    def run(step: Step) -> None:
        order.append(f"{step.kind}{step.subject}")
        done(step)

    turn.run_turn(repository.pk, run)
    assert order == ["redactb", "redacta", "import", "label", "consolidate"]
    assert set(states(repository).values()) == {State.DONE}


def test_a_removal_that_is_asked_for_meanwhile_runs_before_the_next_round(repository: Repository) -> None:
    enqueue_step(repository, Kind.LABEL)
    order: list[str] = []

    def run(step: Step) -> None:
        order.append(step.kind)
        if len(order) == 1:
            enqueue_step(repository, Kind.REDACT, "7")
            steps.mark_progress(step, timezone.now())
        else:
            done(step)

    turn.run_turn(repository.pk, run)
    assert order == [Kind.LABEL, Kind.REDACT, Kind.LABEL]


def test_what_is_asked_for_during_a_run_runs_again(repository: Repository) -> None:
    enqueue_step(repository, Kind.IMPORT)
    runs: list[int] = []

    def run(step: Step) -> None:
        runs.append(step.version)
        if len(runs) == 1:
            enqueue_step(repository, Kind.IMPORT)
        done(step)

    turn.run_turn(repository.pk, run)
    assert runs == [1, 2]
    assert states(repository) == {"import": State.DONE}


def test_asking_again_for_a_waiting_step_adds_none(repository: Repository) -> None:
    for _ in range(3):
        enqueue_step(repository, Kind.IMPORT)
    assert Step.objects.count() == 1


def test_only_the_repositorys_own_steps_run(repository: Repository) -> None:
    other = Repository.objects.create(id=7, host="local", origin="http://127.0.0.1:8000", owner="a", name="b")
    enqueue_step(other, Kind.IMPORT)
    turn.run_turn(repository.pk, done)
    assert states(other) == {"import": State.WAITING}


def test_a_turn_whose_time_is_up_wakes_a_successor(repository: Repository, woken: list[int]) -> None:
    enqueue_step(repository, Kind.IMPORT)
    turn.run_turn(repository.pk, done, seconds=0)
    assert woken == [repository.pk]
    assert states(repository) == {"import": State.WAITING}


def test_a_turn_that_left_nothing_wakes_nobody(repository: Repository, woken: list[int]) -> None:
    enqueue_step(repository, Kind.IMPORT)
    turn.run_turn(repository.pk, done)
    assert woken == []


def test_the_turn_is_let_go_before_the_last_look(
    repository: Repository, woken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that is asked for after the last read, by someone who then finds the turn taken, is not lost."""
    look, read = steps.has_due_steps, steps.next_step

    def read_and_ask(*arguments: Any) -> Step | None:
        step = read(*arguments)
        enqueue_step(repository, Kind.IMPORT)
        return step

    def look_without_the_turn(*arguments: Any) -> bool:
        with stores.take_turn(repository.pk):
            return look(*arguments)

    monkeypatch.setattr(steps, "next_step", read_and_ask)
    monkeypatch.setattr(steps, "has_due_steps", look_without_the_turn)
    turn.run_turn(repository.pk, done)
    assert woken == [repository.pk]


def test_a_taken_turn_ends_the_job_at_once(repository: Repository, woken: list[int]) -> None:
    enqueue_step(repository, Kind.IMPORT)
    with held_elsewhere(repository):
        turn.run_turn(repository.pk, done)
        with pytest.raises(Busy), stores.take_turn(repository.pk):
            pytest.fail("two hold one turn")
    assert states(repository) == {"import": State.WAITING}
    assert woken == []


def test_the_turn_ends_with_the_process_that_holds_it(repository: Repository) -> None:
    with held_elsewhere(repository) as holder:
        holder.kill()
        holder.wait()
        with stores.take_turn(repository.pk):
            pass


def test_a_lock_file_that_was_replaced_means_nothing(repository: Repository) -> None:
    path = stores.store_directory(repository.pk) / "turn.lock"
    with stores.take_turn(repository.pk):
        path.rename(path.with_suffix(".old"))
        with stores.take_turn(repository.pk):
            assert path.exists()


@contextmanager
def held_elsewhere(repository: Repository) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the turn."""
    path = stores.store_directory(repository.pk) / "turn.lock"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    code = (
        "import sys, pathlib; from providers.turn import take_turn\n"
        "with take_turn(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


# Failures ------------------------------------------------------------------------------------------------------------


def fail(step: Step, *, needs_person: bool = False) -> None:
    steps.mark_started(step, timezone.now())
    steps.mark_failed(step, timezone.now(), needs_person=needs_person)


def due_in(step: Step) -> float:
    step.refresh_from_db()
    return (step.not_before - timezone.now()).total_seconds()


@pytest.fixture
def pass_pauses(repository: Repository) -> Callable[[], None]:
    def skip() -> None:
        Step.objects.update(not_before=timezone.now() - timedelta(seconds=1))

    return skip


def test_pauses_grow_and_others_go_on(repository: Repository, pass_pauses: Callable[[], None]) -> None:
    enqueue_step(repository, Kind.IMPORT)
    enqueue_step(repository, Kind.LABEL)
    pauses = []
    for _ in range(4):
        turn.run_turn(repository.pk, lambda step: fail(step) if step.kind == Kind.IMPORT else done(step))
        pauses.append(round(due_in(Step.objects.get(kind=Kind.IMPORT))))
        pass_pauses()
    assert pauses == [5, 20, 80, 320]
    assert states(repository) == {"import": State.WAITING, "label": State.DONE}


def test_a_step_gives_up_and_waits_for_whoever_asks_again(
    repository: Repository, pass_pauses: Callable[[], None]
) -> None:
    enqueue_step(repository, Kind.IMPORT)
    for _ in range(steps.LAST_ATTEMPT):
        assert states(repository) == {"import": State.WAITING}
        turn.run_turn(repository.pk, fail)
        pass_pauses()
    assert states(repository) == {"import": State.FAILED}
    enqueue_step(repository, Kind.IMPORT)
    turn.run_turn(repository.pk, done)
    assert states(repository) == {"import": State.DONE}


def test_a_removal_never_gives_up(repository: Repository, pass_pauses: Callable[[], None]) -> None:
    enqueue_step(repository, Kind.REDACT, "7")
    for _ in range(steps.LAST_ATTEMPT + 2):
        turn.run_turn(repository.pk, lambda step: fail(step, needs_person=True))
        assert due_in(Step.objects.get()) <= steps.LONGEST_PAUSE[Kind.REDACT].total_seconds()
        pass_pauses()
    assert states(repository) == {"redact7": State.WAITING}


def test_what_needs_a_person_waits_for_one(repository: Repository) -> None:
    enqueue_step(repository, Kind.IMPORT)
    turn.run_turn(repository.pk, lambda step: fail(step, needs_person=True))
    assert states(repository) == {"import": State.FAILED}


def test_a_step_that_is_asked_for_while_it_fails_is_tried_again(repository: Repository) -> None:
    enqueue_step(repository, Kind.IMPORT)

    def fail_late(step: Step) -> None:
        enqueue_step(repository, Kind.IMPORT)
        fail(step, needs_person=True)

    turn.run_turn(repository.pk, fail_late)
    assert states(repository) == {"import": State.WAITING}


def test_a_paused_step_keeps_its_pause_when_asked_for_again(repository: Repository) -> None:
    enqueue_step(repository, Kind.LABEL)
    turn.run_turn(repository.pk, fail)
    enqueue_step(repository, Kind.LABEL)
    assert due_in(Step.objects.get()) > 3


def test_a_step_that_kills_its_process_is_paused(repository: Repository) -> None:
    enqueue_step(repository, Kind.IMPORT)
    for _ in range(steps.STARTS_BEFORE_PAUSE):
        step = steps.next_step(repository.pk, timezone.now())
        assert step is not None
        steps.mark_started(step, timezone.now())  # And then nothing: the process died.
    step = steps.next_step(repository.pk, timezone.now())
    assert step is not None
    steps.mark_started(step, timezone.now())
    assert steps.next_step(repository.pk, timezone.now()) is None
    assert due_in(step) > 3


# The sweep -----------------------------------------------------------------------------------------------------------


def test_the_sweep_wakes_what_has_waited(repository: Repository, woken: list[int]) -> None:
    enqueue_step(repository, Kind.IMPORT)
    sweep.sweep()
    assert woken == []
    Step.objects.update(not_before=timezone.now() - sweep.OVERDUE)
    sweep.sweep()
    assert woken == [repository.pk]


def test_the_sweep_starts_scheduled_runs_once(learning_repository: Repository) -> None:
    Step.objects.all().delete()
    repository = learning_repository
    Repository.objects.filter(pk=repository.pk).update(next_run_at=timezone.now())
    for _ in range(2):
        sweep.sweep()
    assert Step.objects.get().version == 1
    repository.refresh_from_db()
    assert repository.next_run_at is not None
    assert repository.next_run_at > timezone.now() + timedelta(hours=23)


def test_one_failing_part_does_not_keep_the_sweep(
    repository: Repository, woken: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_(_: object) -> None:
        raise RuntimeError("secret")

    break_.__name__ = "finish_purges"
    monkeypatch.setattr(sweep, "PARTS", (break_, *sweep.PARTS))
    enqueue_step(repository, Kind.IMPORT)
    Step.objects.update(not_before=timezone.now() - sweep.OVERDUE)
    sweep.sweep()
    assert woken == [repository.pk]
    assert "builtins.RuntimeError" in caplog.text
    assert "secret" not in caplog.text


def test_a_wakeup_without_redis_is_no_failure(repository: Repository) -> None:
    wakeups.send_wakeup(repository.pk)
    wakeups.accept_wakeup(repository.pk)
    with pytest.raises(RedisError):
        wakeups.connection().ping()
