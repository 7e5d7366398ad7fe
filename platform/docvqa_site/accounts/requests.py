"""The type of a request that went through `login_required`."""

from django.http import HttpRequest

from docvqa_site.accounts.models import User


class UserRequest(HttpRequest):
    """A request of a person who is logged in. For annotations only; nothing makes one."""

    user: User
