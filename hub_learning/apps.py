"""The Django application's registration."""

from __future__ import annotations

from django.apps import AppConfig


class HubLearningConfig(AppConfig):
    """The Hub."""

    name = "hub_learning"
    default_auto_field = "django.db.models.BigAutoField"
