"""The Hub's addresses (design.md, section 4)."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from hub_learning import health, sign_in
from hub_learning.api import views as api

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("sign-in/local", sign_in.sign_in_locally, name="sign-in-local"),
    path("sign-out", sign_in.sign_out, name="sign-out"),
    path("api/v1/repositories/<int:repository_id>/comments", api.comments),
    path("api/v1/repositories/<int:repository_id>/recall", api.recall),
    path("", include("hub_learning.pages.urls")),
]
