"""A client of the API, as `pfl submit` is one: a token, JSON, and files in parts."""

import json

from portal.accounts.services import create_token
from portal.uploads.parts import Part
from tests.portal.uploads.sending import cut, put, sha


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
            asked = {"number": part.number, "size_bytes": part.size_bytes, "sha256": part.sha256}
            (target,) = self.post(f"uploads/{upload_id}/part-urls", {"parts": [asked]})["urls"]
            assert put(self.client, target["url"], piece).status_code == 204

    def upload(self, submission, kind, content, run=None, filename="model.safetensors"):
        upload = self.announce(submission, kind, content, run, filename)
        self.send(upload["id"], cut(content, upload["part_size_bytes"]))
        return self.post(f"uploads/{upload['id']}/complete")

    def stored(self, upload_id):
        return [Part(**part) for part in self.get(f"uploads/{upload_id}/parts")["parts"]]


def announcement(submission, kind, content, run=None, filename="model.safetensors"):
    return {
        "submission": str(submission),
        "run": run and str(run),
        "kind": kind,
        "filename": filename,
        "size_bytes": len(content),
        "sha256": sha(content),
    }


def codes(response):
    return [problem["code"] for problem in response.json()["problems"]]
