"""The labeler protocol over `label_text`: each comment by itself, no request leaves the machine, nothing is counted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from learning_core.errors import InvalidConfiguration
from learning_core.plugins import LabelAnswer, LabelRequest
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
        labels = [
            {
                "eventId": comment.event_id,
                "category": label.category,
                "theme": label.theme,
                "observation": label.observation,
                "summary": label.summary,
                "explanation": label.explanation,
            }
            for thread in request.threads
            for comment in thread.comments
            if comment.ask
            for label in label_text(
                comment.body,
                self._themes,
                is_reply=comment.is_reply,
                target=None if comment.target is None else str(comment.target["kind"]),
            )
        ]
        return LabelAnswer(labels)

    def close(self) -> None:
        """Nothing to release."""
