"""Actions of the administration, which ask first."""

import re
from typing import Any

from django.http import HttpResponse
from django.test import Client


def choose(client: Client, address: str, action: str, *keys: object) -> Any:
    """Choose the action for these objects; the page asks whether to go on."""
    return client.post(address, {"action": action, "_selected_action": [str(key) for key in keys]})


def confirm(client: Client, address: str, page: HttpResponse) -> Any:
    """Go on, by the form that the page shows."""
    hidden = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page.text)
    form: dict[str, list[str]] = {}
    for name, value in hidden:
        form.setdefault(name, []).append(value)
    return client.post(address, form, follow=True)


def run(client: Client, address: str, action: str, *keys: object) -> Any:
    """Choose the action and go on; returns the page that this ends at."""
    page = choose(client, address, action, *keys)
    return confirm(client, address, page) if page.status_code == 200 else page
