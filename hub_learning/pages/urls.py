"""The pages' addresses (design.md, section 4)."""

from __future__ import annotations

from django.urls import path

from hub_learning.pages.activity import show_activity
from hub_learning.pages.consent import consent_page
from hub_learning.pages.decisions import learning_page
from hub_learning.pages.home import show_home
from hub_learning.pages.queue import show_queue

app_name = "pages"
urlpatterns = [
    path("", show_home, name="home"),
    path("repositories/<int:repository_id>/learnings/", show_queue, name="learnings"),
    path("repositories/<int:repository_id>/learnings/<slug:memory_id>/", learning_page, name="learning"),
    path("repositories/<int:repository_id>/consent/", consent_page, name="consent"),
    path("repositories/<int:repository_id>/activity/", show_activity, name="activity"),
]
