"""The API's documentation page, and the answer at addresses that it doesn't have."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.text import slugify
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from ninja import NinjaAPI

from docvqa_site.uploads.problems import problem_response
from evaluator.errors import ErrorCode, ProblemError


@dataclass(frozen=True)
class Subject:
    """The endpoints about one thing; `anchor` is where the page has them."""

    name: str
    anchor: str
    about: str
    endpoints: list[dict[str, Any]] = field(default_factory=list)


@csrf_exempt
def no_such_operation(_request: HttpRequest) -> HttpResponse:
    """Answer for an address that the API doesn't have."""
    return problem_response(ProblemError.of(ErrorCode.REQUEST_NOT_FOUND))


def docs(api: NinjaAPI) -> Any:
    """Return a view that lists every endpoint in the OpenAPI schema of `api`."""

    # The schema is that of the code, so the page is put together once.
    @cache
    def subjects() -> list[Subject]:
        schema = api.get_openapi_schema()
        groups = {
            tag["name"]: Subject(tag["name"], slugify(tag["name"]), tag["description"])
            for tag in schema["tags"]
        }
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                (name,) = operation["tags"]
                groups[name].endpoints.append(_endpoint(schema, method, path, operation))
        return list(groups.values())

    @require_safe
    def page(request: HttpRequest) -> HttpResponse:
        return render(request, "api/docs.html", {"subjects": subjects()})

    return page


def _endpoint(schema: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    """Return an operation with the fields that it takes, and those that it returns."""
    returned = [content for code, content in operation["responses"].items() if str(code).startswith("2")]
    tables = {"Request": operation.get("requestBody", {}), "Response": returned[0] if returned else {}}
    return {
        **operation,
        "method": method.upper(),
        "path": path,
        "tables": {title: fields for title, body in tables.items() if (fields := _fields(schema, body))},
    }


def _fields(schema: dict[str, Any], message: dict[str, Any]) -> list[dict[str, Any]]:
    body = message.get("content", {}).get("application/json", {}).get("schema", {})
    model = schema["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
    required = model.get("required", [])
    return [
        {"name": name, "type": _type(kind), "required": name in required}
        for name, kind in model.get("properties", {}).items()
    ]


def _type(kind: dict[str, Any]) -> str:
    if "anyOf" in kind:
        return " or ".join(_type(choice) for choice in kind["anyOf"])
    if kind.get("type") == "array":
        return f"list of {_type(kind['items'])}"
    return str(kind.get("format") or kind.get("type") or "object")
