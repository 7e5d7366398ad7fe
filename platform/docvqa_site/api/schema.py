"""The OpenAPI schema, with the one form that every error has."""

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from typing_extensions import override

from evaluator.messages.api import Problems

REFERENCES = "#/components/schemas/{model}"
ERROR = {
    "description": "The problems, each with an error code",
    "content": {"application/problem+json": {"schema": {"$ref": REFERENCES.format(model="Problems")}}},
}

# Descriptions of the tags, in the order of the documentation.
SUBJECTS = {
    "tracks": "Tracks with their rules and phases, and your team's quota.",
    "account": "The current token and its owner.",
    "team": "Your team: details, members and invitations.",
    "training records": "Signing keys and run tokens, required in tracks with privacy budgets.",
    "submissions": "From draft to results: description, runs, files, submit, cancel, publish, withdraw.",
    "uploads": "File uploads in parts; interrupted uploads can be resumed.",
    "downloads": "Data, base weights and the starter kit, with their terms.",
    "notifications": "Your notifications and email settings.",
    "leaderboards": "Public leaderboards. No token needed.",
}


class DocumentedAPI(NinjaAPI):
    """An API whose schema says of every operation how it reports errors, and what each subject is about."""

    @override
    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        problems = Problems.model_json_schema(ref_template=REFERENCES, mode="serialization")
        definitions = problems.pop("$defs", {})
        schema["components"]["schemas"] |= {**definitions, "Problems": problems}
        schema["tags"] = [{"name": name, "description": about} for name, about in SUBJECTS.items()]
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"]["default"] = ERROR
        return schema
