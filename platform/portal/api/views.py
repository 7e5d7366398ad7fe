"""The page that documents the API."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from ninja import NinjaAPI


def docs(api: NinjaAPI) -> Any:
    """Return a view that lists every endpoint of `api` from its OpenAPI schema."""

    @require_safe
    def page(request: HttpRequest) -> HttpResponse:
        schema = api.get_openapi_schema()
        endpoints = [
            {"method": method.upper(), "path": path, **operation, "fields": _fields(schema, operation)}
            for path, operations in schema["paths"].items()
            for method, operation in operations.items()
        ]
        return render(request, "api/docs.html", {"endpoints": endpoints})

    return page


def _fields(schema: dict[str, Any], operation: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of the operation's JSON body."""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
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
