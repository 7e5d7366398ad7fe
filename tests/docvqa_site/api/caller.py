"""A client of the API, as `pfl submit` is one: a token, JSON, and files in parts."""

import json

from docvqa_site.accounts.services import create_token
from evaluator.messages.file_api import NewUpload, PartUrls, StoredParts, UploadPart, WantedParts
from tests.docvqa_site.uploads.sending import cut, put, sha


class Caller:
    def __init__(self, client, user=None):
        self.client = client
        self.headers = {"Authorization": f"Bearer {create_token(user, 'test')[1]}"} if user else {}

    def __call__(self, method, path, body=None):
        text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        return self.client.generic(
            method, f"/api/v1/{path}", text, content_type="application/json", headers=self.headers
        )

    def get(self, path):
        response = self("GET", path)
        assert response.status_code == 200, response.content
        return response.json()

    def post(self, path, body=None):
        response = self("POST", path, body)
        assert response.status_code in (200, 201), response.content
        return response.json()

    def announce(self, submission, kind, content, run=None, filename="model.safetensors"):
        return self.post("uploads", announcement(submission, kind, content, run, filename))

    def send(self, upload_id, parts):
        """PUT these (part, bytes) pairs."""
        for part, piece in parts:
            wanted = WantedParts(parts=[UploadPart.model_validate(part)]).model_dump(mode="json")
            (target,) = PartUrls.model_validate(self.post(f"uploads/{upload_id}/part-urls", wanted)).urls
            assert put(self.client, target.url, piece).status_code == 204

    def upload(self, submission, kind, content, run=None, filename="model.safetensors"):
        upload = self.announce(submission, kind, content, run, filename)
        self.send(upload["id"], cut(content, upload["part_size_bytes"]))
        return self.post(f"uploads/{upload['id']}/complete")

    def stored(self, upload_id):
        """The parts of an upload that are stored."""
        return StoredParts.model_validate(self.get(f"uploads/{upload_id}/parts")).parts


def announcement(submission, kind, content, run=None, filename="model.safetensors"):
    return NewUpload(
        submission=submission,
        run=run,
        kind=kind,
        filename=filename,
        size_bytes=len(content),
        sha256=sha(content),
    ).model_dump(mode="json")


def codes(response):
    return [problem["code"] for problem in response.json()["problems"]]
