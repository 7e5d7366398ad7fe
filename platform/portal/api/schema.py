"""The OpenAPI schema, with the one form that every error has."""

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from typing_extensions import override

from evaluator.messages.api import Problems

REFERENCES = "#/components/schemas/{model}"
ERROR = {
    "description": "What is wrong, as coded problems",
    "content": {"application/problem+json": {"schema": {"$ref": REFERENCES.format(model="Problems")}}},
}

# What the operations are about, by their tags, in the order of the documentation.
SUBJECTS = {
    "tracks": "The tracks with their rules and phases, and your team's quota.",
    "account": "The person that a token belongs to, and the token itself.",
    "team": "Your team: its details, members and invitations.",
    "training records": "Signing keys and run tokens, which private tracks require.",
    "submissions": "From a draft to its results: text, runs, files, submit, cancel, publish, withdraw.",
    "uploads": "Files in parts, which resume after an interruption.",
    "notifications": "What the site has notified you of, and what also comes by mail.",
    "leaderboards": "The public boards. No token is needed.",
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
