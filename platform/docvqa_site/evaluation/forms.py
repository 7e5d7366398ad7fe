"""The organizers' forms about evaluations."""

from datetime import datetime, timedelta

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime
from django.utils import timezone


def _a_day_ago() -> datetime:
    return timezone.now() - timedelta(days=1)


def _date_and_time() -> AdminSplitDateTime:
    """Return the administration's two fields, each with a name: their common label is of neither."""
    widget = AdminSplitDateTime()
    for part, name in zip(widget.widgets, ("date", "time"), strict=True):
        part.attrs["aria-label"] = f"Failed since: {name} (UTC)"
    return widget


class FailedSinceForm(forms.Form):
    since = forms.SplitDateTimeField(
        label="Failed since (UTC)", initial=_a_day_ago, widget=_date_and_time(), required=True
    )
