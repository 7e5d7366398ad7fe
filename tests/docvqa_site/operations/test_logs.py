import json
import logging
from collections.abc import Iterator

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path

from docvqa_site.evaluation.tasks import receive_report
from docvqa_site.urls import urlpatterns as site
from evaluator.worker.logs import REQUEST_HEADER, JsonFormatter, TextFormatter, log_context, logging_settings
from tests.docvqa_site.evaluation.messages import make_report


def broken(_request: HttpRequest) -> HttpResponse:
    logging.getLogger("docvqa_site.test").warning("about to fail")
    raise RuntimeError("a bug")


urlpatterns = [*site, path("broken", broken)]
handler500 = "docvqa_site.operations.views.server_error"


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What is logged as JSON."""
    written: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(self.format(record))

    handler = Keep()
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


def record(message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("docvqa_site", logging.INFO, "", 1, message, arguments, None)


class TestRequests:
    def test_a_request_gets_a_name_that_the_answer_carries(self, client: Client) -> None:
        name = client.get("/healthz")["X-Request-ID"]
        assert len(name) == 24
        assert client.get("/healthz")["X-Request-ID"] != name

    def test_the_proxys_name_is_kept(self, client: Client) -> None:
        assert (
            client.get("/healthz", headers={"X-Request-ID": "abc-12345678"})["X-Request-ID"] == "abc-12345678"
        )

    @pytest.mark.parametrize("name", ["short", "x" * 100, "a b c d e f g", 'quote"quote"', "line\nline-line"])
    def test_a_name_that_would_confuse_logs_is_replaced(self, client: Client, name: str) -> None:
        assert client.get("/healthz", headers={"X-Request-ID": name})["X-Request-ID"] != name

    def test_a_page_of_an_error_names_the_request(self, client: Client, db: None) -> None:
        response = client.get("/nowhere", headers={"X-Request-ID": "abc-12345678"})
        assert response.status_code == 404
        assert "abc-12345678" in response.content.decode()

    @override_settings(ROOT_URLCONF=__name__)
    def test_the_log_of_an_exception_and_its_page_name_the_request(self, lines: list[str]) -> None:
        client = Client(raise_request_exception=False)
        page = client.get("/broken", headers={"X-Request-ID": "abc-12345678"}).content.decode()
        assert "abc-12345678" in page
        assert "a bug" not in page
        entries = [json.loads(line) for line in lines]
        assert {entry["request"] for entry in entries} == {"abc-12345678"}
        assert any("RuntimeError: a bug" in entry.get("exception", "") for entry in entries)


class TestTasks:
    def test_a_task_logs_its_evaluation_and_attempt_and_the_request_that_sent_it(
        self, lines: list[str], db: None
    ) -> None:
        run = type("Evaluation", (), {"pk": "8be9cbd8-1f1d-4d6c-a1c0-8a5b7cf5a9d0", "attempt": 2})
        report = make_report(run, "scoring", "failed").model_dump(mode="json")
        receive_report.apply((report,), headers={REQUEST_HEADER: "abc-12345678"})
        entries = [json.loads(line) for line in lines]
        assert any(
            (entry.get("evaluation"), entry.get("attempt")) == ("8be9cbd8-1f1d-4d6c-a1c0-8a5b7cf5a9d0", "2")
            for entry in entries
        )
        logging.getLogger("docvqa_site").warning("after it")
        assert "evaluation" not in json.loads(lines[-1])


class TestLines:
    def test_a_json_line_has_what_searches_need(self) -> None:
        with log_context(request="r-1"):
            entry = json.loads(JsonFormatter().format(record("%s runs\nare queued", 3)))
        assert entry["message"] == "3 runs\nare queued"
        assert (entry["level"], entry["logger"], entry["request"]) == ("INFO", "docvqa_site", "r-1")
        assert entry["time"].endswith("+00:00")

    def test_a_text_line_ends_with_its_context(self) -> None:
        with log_context(request="r-1"):
            assert TextFormatter().format(record("ready")).endswith("INFO docvqa_site: ready [request=r-1]")
        assert TextFormatter().format(record("ready")).endswith("docvqa_site: ready")

    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("Not Found: /uploads/files/SECRET", "/uploads/files/***"),
            ("Not Found: /reviews/proof-pages/SECRET/1.webp", "/reviews/proof-pages/***/1.webp"),
            ("PUT /uploads/parts/SECRET?x=1", "/uploads/parts/***?x=1"),
            ("/account/password/reset/key/SECRET/", "/password/reset/key/***/"),
            ("/account/confirm-email/SECRET/", "/confirm-email/***/"),
            ("Authorization: Bearer SECRET", "Bearer ***"),
            ("redis://site:SECRET@host/0 is away", "redis://site:***@host/0 is away"),
            ("GET https://s3/x?X-Amz-Signature=SECRET&a=1", "X-Amz-Signature=***&a=1"),
        ],
    )
    def test_what_opens_something_is_masked(self, text: str, kept: str) -> None:
        for formatter in (TextFormatter(), JsonFormatter()):
            line = formatter.format(record(text))
            assert kept in line
            assert "SECRET" not in line

    def test_an_unknown_format_is_rejected(self) -> None:
        with pytest.raises(ValueError, match="text or json"):
            logging_settings("xml", "INFO")
