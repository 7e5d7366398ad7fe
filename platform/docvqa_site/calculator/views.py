"""The privacy calculator: one page whose address contains the question."""

from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from docvqa_site.calculator.forms import ScenarioForm
from docvqa_site.calculator.presets import presets
from docvqa_site.calculator.results import Result
from docvqa_site.limits import Limit, network_of

# Answers that were computed for one address, so that no visitor blocks the site for others.
ANSWERS = Limit("calculator", 30)


@require_safe
def calculator(request: HttpRequest) -> HttpResponse:
    """Show the form, and the result of the scenario in the address."""
    form = ScenarioForm.of_address(request.GET)
    if not form.is_valid():
        return _page(request, form)
    # Imported here: the accountants take a second to load, and other pages of the site don't need them.
    from docvqa_site.calculator import answers

    try:
        question = answers.Question(form.scenario(), form.target())
    except ValueError as error:
        return _page(request, form, rejection=str(error))
    answer = answers.remembered(question)
    if answer is None and ANSWERS.wait_s(network_of(request)):
        return _page(request, form, too_many=True, status=HTTPStatus.TOO_MANY_REQUESTS)
    try:
        answer = answer or answers.answer(question)
    except ValueError as error:
        return _page(request, form, rejection=str(error))
    return _page(request, form, result=Result(answer, form.cleaned_data["budget"]))


def _page(
    request: HttpRequest, form: ScenarioForm, *, status: HTTPStatus = HTTPStatus.OK, **shown: object
) -> HttpResponse:
    """Show the form with a `result`, with a `rejection`, with that there were `too_many` requests, or alone."""
    link = settings.SITE_URL + request.get_full_path()
    context = {"form": form, "presets": presets(), "link": link, **shown}
    return render(request, "calculator/calculator.html", context, status=status)
