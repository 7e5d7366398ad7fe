"""The OpenAPI schema, with the one form that every error has."""

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from typing_extensions import override

from evaluator.api import Problems

REFERENCES = "#/components/schemas/{model}"
ERROR = {
    "description": "What is wrong, as coded problems",
    "content": {"application/problem+json": {"schema": {"$ref": REFERENCES.format(model="Problems")}}},
}


class DocumentedAPI(NinjaAPI):
    """An API whose schema says of every operation how it reports errors."""

    @override
    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        problems = Problems.model_json_schema(ref_template=REFERENCES, mode="serialization")
        definitions = problems.pop("$defs", {})
        schema["components"]["schemas"] |= {**definitions, "Problems": problems}
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"]["default"] = ERROR
        return schema
