"""The Hub's own tables: who reviews what, what is still to be done, and what was done.

Comment text stands in `Comment.body` and nowhere else. Every other column holds IDs, times, counts and codes, so that
erasing a comment here means emptying one column. Learnings have no table: the pages read the learning store.

Source: design.md, decisions 7 to 12 and 15.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models

MAX_ID = 200


class PersonManager(BaseUserManager["Person"]):
    """Finds people by principal."""

    def get_by_natural_key(self, username: str | None) -> Person:
        return self.get(principal_id=username)


class Person(AbstractBaseUser):
    """Someone who can sign in. There are no passwords: GitHub knows people, or this machine's operator does."""

    principal_id = models.CharField(max_length=300, unique=True)
    """`github-user:<host>/<id>` or `hub-user:<origin>/<id>`. It never changes: records carry it."""
    login = models.CharField(max_length=100)
    """The name to show. It may change and identifies nobody."""
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "principal_id"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[PersonManager] = PersonManager()

    def __str__(self) -> str:
        return self.login


class Repository(models.Model):
    """One repository whose review comments the Hub holds, and how it learns from them."""

    id = models.BigIntegerField(primary_key=True)
    """The review tool's own numeric ID (GitHub's, for GitHub). It survives a rename and a transfer."""
    host = models.CharField(max_length=200)
    """`github.com`, a GitHub Enterprise host, or `local`, the only host whose reviewers have a `localId`."""
    origin = models.CharField(max_length=300)
    """This Hub's origin when it first saw the repository. Event IDs derive from it, so it stays."""
    owner = models.CharField(max_length=MAX_ID)
    name = models.CharField(max_length=MAX_ID)
    created_at = models.DateTimeField(auto_now_add=True)

    enabled = models.BooleanField(default=False)
    """Whether the loop runs. Deletions are carried out either way."""
    enabled_by = models.CharField(max_length=300, blank=True)
    """The principal who enabled it last. Kept when it is disabled: removals without a known person are in this name."""
    enabled_at = models.DateTimeField(null=True, blank=True)
    categories = models.JSONField(default=list, blank=True)
    """Categories that consolidation proposes from; an empty list means the consolidator's default."""
    min_threads = models.PositiveSmallIntegerField(default=2)
    min_prototypes = models.PositiveSmallIntegerField(default=2)
    min_reviewers = models.PositiveSmallIntegerField(default=2)
    max_new = models.PositiveSmallIntegerField(default=10)
    """The most proposals that one consolidation may add or change."""
    schedule_hours = models.PositiveSmallIntegerField(default=24)
    """Hours between scheduled runs; 0 for none. A new comment starts a run anyway."""
    next_run_at = models.DateTimeField(null=True, blank=True)
    captured_at = models.DateTimeField(null=True, blank=True)
    """`capturedAt` of the newest snapshot that reached the store. Snapshots never go back behind it."""
    audit_count = models.PositiveBigIntegerField(default=0)
    """How many audit entries the store was last seen with; a store with fewer was rolled back. It only grows."""
    audit_chain = models.CharField(max_length=64, blank=True)
    """The store's audit chain at that count."""

    class Meta:
        """Indexes."""

        verbose_name_plural = "repositories"
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["next_run_at"], name="repository_next_run")]

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def scope(self) -> str:
        """The store's scope: by number, so that a rename or transfer keeps the learnings."""
        return f"{self.host}/_id/{self.id}"


class Prototype(models.Model):
    """What is reviewed: a prototype, or for GitHub a pull request."""

    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="prototypes")
    prototype_id = models.CharField(max_length=MAX_ID)
    title = models.CharField(max_length=1000, blank=True)
    url = models.CharField(max_length=2000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """One row per prototype ID."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["repository", "prototype_id"], name="prototype_once")
        ]

    def __str__(self) -> str:
        return self.title or self.prototype_id


class Build(models.Model):
    """One reviewed state of a prototype. Number and commit are set at first sight and never change."""

    prototype = models.ForeignKey(Prototype, on_delete=models.PROTECT, related_name="builds")
    number = models.PositiveBigIntegerField()
    """Counts up per prototype in the order in which the Hub first saw its builds."""
    commit_sha = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - unknown, and unique where known
    first_seen_at = models.DateTimeField()
    """When the earliest known comment on it was written."""

    class Meta:
        """One row per number, and per commit where it is known."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["prototype", "number"], name="build_number_once"),
            models.UniqueConstraint(fields=["prototype", "commit_sha"], name="build_commit_once"),
        ]

    def __str__(self) -> str:
        return f"build {self.number}"


class Thread(models.Model):
    """A review thread: a root comment and its replies. The pin is frozen when the root is first seen.

    `build` is None while only replies have arrived; such a thread is in no snapshot.
    """

    class Status(models.TextChoices):
        """The log's own words."""

        OPEN = "open"
        RESOLVED = "resolved"

    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="threads")
    root_id = models.CharField(max_length=MAX_ID)
    build = models.ForeignKey(Build, on_delete=models.PROTECT, related_name="threads", null=True, blank=True)
    branch = models.CharField(max_length=1000, blank=True)
    target = models.JSONField(null=True, blank=True)
    """`{"kind": "element", "selector"}`, `{"kind": "file", "path", "line"}` or `{"kind": "page"}`."""
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.JSONField(null=True, blank=True)
    status_as_of = models.DateTimeField(null=True, blank=True)
    """When the sender knew this status; an older message does not change it."""

    class Meta:
        """One row per root comment."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["repository", "root_id"], name="thread_once")
        ]

    def __str__(self) -> str:
        return self.root_id


class Comment(models.Model):
    """One comment: a thread's root or a reply. This row is the only one that holds its text."""

    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="comments")
    thread = models.ForeignKey(Thread, on_delete=models.PROTECT, related_name="comments")
    comment_id = models.CharField(max_length=MAX_ID)
    is_root = models.BooleanField()
    author = models.JSONField(null=True, blank=True)
    """`{"login", "githubId" or "localId", "bot"?}` as in the log, or None. Once it has an ID, the ID stays."""
    body = models.TextField(null=True, blank=True)  # noqa: DJ001 - None is an erased text, "" an empty one
    created_at = models.DateTimeField()
    edited_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    """Final for this comment ID: from then on nothing changes and `body` is None."""
    deleted_by = models.JSONField(null=True, blank=True)
    url = models.CharField(max_length=2000, blank=True)
    version = models.PositiveIntegerField(default=1)
    """Counts the edits and the deletion. A step clears `dirty` only for the version that it brought into the store."""
    dirty = models.BooleanField(default=False)
    """An edit or a deletion is here and not yet in the store: whatever cites the comment is withheld."""

    class Meta:
        """Comment IDs are unique per repository; what is withheld is found by its own small index."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["repository", "comment_id"], name="comment_once"),
            models.CheckConstraint(
                condition=models.Q(deleted_at__isnull=True) | models.Q(body__isnull=True), name="deleted_has_no_body"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["repository"], condition=models.Q(dirty=True), name="comment_dirty"),
            models.Index(fields=["repository", "thread", "-is_root", "created_at", "id"], name="comment_in_log_order"),
        ]

    def __str__(self) -> str:
        return self.comment_id


class AnalyticsEvent(models.Model):
    """Something that happened in review, as IDs. Kept for 90 days."""

    class Name(models.TextChoices):
        """The seven events."""

        PROTOTYPE_REGISTERED = "prototype_registered"
        PROTOTYPE_FIRST_PUBLISHED = "prototype_first_published"
        BUILD_PUBLISHED = "build_published"
        REVIEW_COMMENT_CREATED = "review_comment_created"
        REVIEW_REPLY_ADDED = "review_reply_added"
        REVIEW_THREAD_RESOLVED = "review_thread_resolved"
        REVIEW_THREAD_REOPENED = "review_thread_reopened"

    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="analytics_events")
    name = models.CharField(max_length=40, choices=Name)
    at = models.DateTimeField(auto_now_add=True, db_index=True)
    prototype_id = models.CharField(max_length=MAX_ID)
    build_number = models.PositiveBigIntegerField(null=True, blank=True)
    comment_id = models.CharField(max_length=MAX_ID, blank=True)

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """A message that was taken in, so that the same one again changes nothing. Kept for 30 days."""

    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="deliveries")
    key = models.CharField(max_length=300)
    """`key:<Idempotency-Key>`, or `body:<digest>` when the sender gave none."""
    digest = models.CharField(max_length=64)
    """A keyed digest of the body, so that nobody can confirm a guess of a short comment with it."""
    received_at = models.DateTimeField(auto_now_add=True, db_index=True)
    answer = models.JSONField()
    """What was answered: counts only."""

    class Meta:
        """A key counts once per repository."""

        verbose_name_plural = "deliveries"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["repository", "key"], name="delivery_once")
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"


class ApiToken(models.Model):
    """A bearer token of one repository. The Hub keeps its digest only."""

    class Kind(models.TextChoices):
        """What the bearer may do: a source sends comments, an agent recalls."""

        SOURCE = "source"
        AGENT = "agent"

    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="api_tokens")
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=100)
    """An agent acts as `agent:<name>`."""
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.CharField(max_length=300)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class LearningRun(models.Model):
    """One run of a step, as the pages show it. It never holds text of a comment."""

    class State(models.TextChoices):
        """`failed` says in `retry_at` whether it is tried again."""

        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="runs")
    kind = models.CharField(max_length=12)
    """A `Step.Kind`."""
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    progress_done = models.PositiveIntegerField(default=0)
    progress_total = models.PositiveIntegerField(null=True, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    message = models.CharField(max_length=500, blank=True)
    """The failure in plain words, from the Hub's own table of codes."""
    retry_at = models.DateTimeField(null=True, blank=True)
    usage = models.JSONField(default=dict, blank=True)
    """`{"requests", "inputTokens", "outputTokens", "nanoAiu"}`, of labeling."""
    result = models.JSONField(default=dict, blank=True)
    """Counts and IDs that the store reported."""

    class Meta:
        """Newest first, per repository."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["repository", "-started_at"], name="run_by_repository")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"


class Step(models.Model):
    """Work of a repository's turn. One row per repository, kind and subject, used again and again.

    Asking for a step that is waiting already raises `version`; a run marks the step done only if the version is still
    the one that it started with. So nothing that is asked for during a run is lost.
    """

    class Kind(models.TextChoices):
        """In order of urgency."""

        REDACT = "redact"
        IMPORT = "import"
        LABEL = "label"
        CONSOLIDATE = "consolidate"

    class State(models.TextChoices):
        """`failed` waits for a person: whatever repairs the cause asks for the step again."""

        WAITING = "waiting"
        DONE = "done"
        FAILED = "failed"

    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="steps")
    kind = models.CharField(max_length=12, choices=Kind)
    subject = models.CharField(max_length=MAX_ID, blank=True)
    """The comment ID of a redaction; empty otherwise."""
    urgency = models.PositiveSmallIntegerField()
    """0 is most urgent: the position of the kind."""
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    version = models.PositiveIntegerField(default=1)
    attempts = models.PositiveIntegerField(default=0)
    """Failures in a row."""
    not_before = models.DateTimeField()
    run = models.ForeignKey(LearningRun, on_delete=models.SET_NULL, null=True, blank=True, related_name="steps")
    """The run in progress. It survives a killed worker, so the next one carries it on."""

    class Meta:
        """The queue is read by repository and urgency, the sweep by time."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["repository", "kind", "subject"], name="step_once")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["repository", "urgency"], condition=models.Q(state="waiting"), name="step_waiting_by_urgency"
            ),
            models.Index(fields=["not_before"], condition=models.Q(state="waiting"), name="step_waiting_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"


class AppendOnlyQuerySet(models.QuerySet["SecurityAuditEntry"]):
    """Rows are added and read."""

    def update(self, **_: Any) -> NoReturn:
        raise TypeError("security audit entries are never changed")

    def delete(self) -> NoReturn:
        raise TypeError("security audit entries are never removed")


class SecurityAuditEntry(models.Model):
    """Who did what in the Hub, as IDs. Written in the transaction of the change itself."""

    at = models.DateTimeField(auto_now_add=True)
    actor = models.CharField(max_length=300)
    """The principal."""
    action = models.CharField(max_length=60)
    repository = models.ForeignKey(
        Repository, on_delete=models.PROTECT, null=True, blank=True, related_name="security_audit"
    )
    subject = models.CharField(max_length=300, blank=True)
    """The ID of what it was done to."""
    scope = models.CharField(max_length=300, blank=True)
    position = models.PositiveBigIntegerField(null=True, blank=True)
    """Scope and audit position of the learning store's entry for the same act, if it has one."""

    objects: ClassVar[models.Manager[SecurityAuditEntry]] = models.Manager.from_queryset(AppendOnlyQuerySet)()

    class Meta:
        """A store's entry is claimed once."""

        verbose_name_plural = "security audit entries"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["scope", "position"], name="store_entry_once")
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("security audit entries are never changed")
        super().save(*args, **kwargs)

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("security audit entries are never removed")


class HubSetting(models.Model):
    """One setting of the whole Hub."""

    class Key(models.TextChoices):
        """`labeler`: a Hub administrator's choice, without which nothing learns. `purge`: see `hub_learning.purge`."""

        LABELER = "labeler"
        PURGE = "purge"

    key = models.CharField(max_length=40, choices=Key, primary_key=True)
    value = models.JSONField()
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return self.key
