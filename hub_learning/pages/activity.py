"""`/repositories/<id>/activity/`: what the Hub did for the repository, newest first."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from hub_learning.actions import do_request_run
from hub_learning.models import LearningRun
from hub_learning.pages.places import Place, at_repository, see_other
from hub_learning.pages.runs import describe_run
from hub_learning.pages.times import describe_time

MOST = 50


@require_http_methods(["GET", "HEAD", "POST"])
@at_repository
def show_activity(place: Place) -> HttpResponse:
    """The newest runs; a POST asks for a run now."""
    if place.request.method == "POST":
        do_request_run(place.repository, place.principal)
        return see_other(place.address("activity"))
    now = timezone.now()
    runs = [
        describe_run(run, now) for run in LearningRun.objects.filter(repository=place.repository).order_by("-pk")[:MOST]
    ]
    running = next((run for run in runs if run.is_running), None)
    next_run = place.repository.next_run_at
    headline = f"What the Hub did with the comments. Next run: {describe_time(next_run, now).full}." if next_run else ""
    context = {"runs": runs, "run": running, "headline": headline}
    return place.render("pages/activity.html", context, tab="activity")
