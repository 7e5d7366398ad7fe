"""A person's own pages: profile and API tokens."""

from allauth.account.decorators import reauthentication_required
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from docvqa_site.accounts.forms import ProfileForm, TokenForm
from docvqa_site.accounts.models import ApiToken
from docvqa_site.accounts.requests import UserRequest
from docvqa_site.accounts.selectors import active_tokens
from docvqa_site.accounts.services import create_token, revoke_token, update_profile
from docvqa_site.accounts.signals import security_changed
from evaluator.errors import ProblemError

# The page whose form has created a token last.
LAST_FORM = "last_token_form"


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def profile(request: UserRequest) -> HttpResponse:
    form = ProfileForm(request.POST or None, instance=request.user)
    if request.method == "POST" and form.is_valid():
        update_profile(request.user, **form.cleaned_data)
        messages.success(request, "Your profile is saved.")
        return redirect("accounts:profile")
    return render(request, "accounts/profile.html", {"form": form})


@never_cache
@login_required
@reauthentication_required(allow_get=True)
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: UserRequest) -> HttpResponse:
    """List the user's tokens; a POST creates one and shows its secret, this once."""
    form, secret = TokenForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        page = form.cleaned_data.pop("page")
        # A reload sends the form again.
        if page and request.session.get(LAST_FORM) == page:
            messages.warning(
                request,
                "Your new token was already shown. If you didn't copy it, revoke it and create another.",
            )
            return redirect("accounts:tokens")
        try:
            token, secret = create_token(request.user, **form.cleaned_data)
            request.session[LAST_FORM] = page
            form = TokenForm()
            security_changed.send(
                sender=ApiToken,
                user=request.user,
                subject="A new API token was created",
                text=f"The API token “{token.label}” was created for your account.\n\nIf this wasn't you, revoke the "
                "token, reset your password and contact the organizers.\n\n"
                f"{settings.SITE_URL}{reverse('accounts:tokens')}",
            )
        except ProblemError as error:
            form.add_error(None, f"{error.problem.message} {error.problem.next_step}")
    context = {"form": form, "secret": secret, "tokens": active_tokens(request.user)}
    return render(request, "accounts/tokens.html", context)


@login_required
@require_POST
def revoke(request: UserRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(active_tokens(request.user), pk=token_id)
    revoke_token(token, actor=request.user)
    messages.success(request, f"The token “{token.label}” is revoked.")
    return redirect("accounts:tokens")
