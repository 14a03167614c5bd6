"""The labeler protocol over `label_text`: each comment by itself, no request leaves the machine, nothing is counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from learning_core.errors import InvalidConfiguration
from learning_core.plugins import LabelAnswer, LabelRequest, LabelThread
from providers.labelers.offline.matching import label_text
from providers.labelers.offline.themes import Themes, load_themes


def create_labeler(options: Mapping[str, Any]) -> OfflineLabeler:
    """An offline labeler. `options`: `themes`, the path of a further themes file. Raises `InvalidConfiguration`."""
    unknown = sorted(set(options) - {"themes"})
    path = options.get("themes")
    if unknown or not (path is None or isinstance(path, str)):
        raise InvalidConfiguration("The offline labeler has one option: themes, the path of a themes file.")
    return OfflineLabeler(load_themes(Path(path) if path is not None else None))


class OfflineLabeler:
    """See the module."""

    def __init__(self, themes: Themes) -> None:
        self._themes = themes

    def manifest(self) -> Mapping[str, Any]:
        """What it is, and that it sends nothing anywhere."""
        return {"id": "offline", "version": "1", "sendsTo": []}

    def label(self, request: LabelRequest) -> LabelAnswer:
        """The labels of every comment that is asked about."""
        return LabelAnswer([label for thread in request.threads for label in self._label_thread(thread)])

    def _label_thread(self, thread: LabelThread) -> Iterator[dict[str, str]]:
        # A reply has no target of its own; it is about what its thread is about.
        target = next((str(comment.target["kind"]) for comment in thread.comments if comment.target is not None), None)
        for comment in thread.comments:
            if not comment.ask:
                continue
            for label in label_text(comment.body, self._themes, is_reply=comment.is_reply, target=target):
                yield {"eventId": comment.event_id, **asdict(label)}

    def close(self) -> None:
        """Nothing to release."""
