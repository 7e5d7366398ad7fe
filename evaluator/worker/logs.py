"""Logs for people and for machines: lines of text, or of JSON, each with the context that it belongs to.

The context is what is being worked on: a request, an evaluation and its attempt. Both the site and the workers use this
module, so that one search finds what all processes did for one evaluation. Signed addresses and tokens are masked.
"""

import contextlib
import json
import logging
import logging.config
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from celery.signals import before_task_publish, setup_logging, task_postrun, task_prerun

_context: ContextVar[Mapping[str, str]] = ContextVar("log_context", default=MappingProxyType({}))
_tasks: dict[str, Token[Mapping[str, str]]] = {}

REQUEST_HEADER = "pfl_request"
TEXT_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s%(context)s"
# What opens something by itself: signed addresses of files, parts and pages of proofs, links of mails, tokens
SECRETS = re.compile(
    r"(?P<kept>/uploads/(?:parts|files)/|/proof-pages/|/confirm-email/|/password/reset/key/|/invitations?/"
    r"|Bearer\s+|pfl_|X-Amz-Signature=|://[^\s:/@]*:)[^\s/?&\"'@]+"
)


@contextlib.contextmanager
def log_context(**values: str) -> Iterator[None]:
    """Add `values` to the context of everything that is logged inside."""
    token = _context.set({**_context.get(), **values})
    try:
        yield
    finally:
        _context.reset(token)


def mask_secrets(text: str) -> str:
    """Return `text` without what would open something by itself."""
    return SECRETS.sub(r"\g<kept>***", text)


class TextFormatter(logging.Formatter):
    """A line for people; the context follows in brackets."""

    def __init__(self) -> None:
        super().__init__(TEXT_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        context = _context.get()
        record.context = f" [{' '.join(f'{k}={v}' for k, v in context.items())}]" if context else ""
        return mask_secrets(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the context and, if there is one, the exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of JSON."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": mask_secrets(record.getMessage()),
            "process": record.process,
            **_context.get(),
        }
        if record.exc_info:
            entry["exception"] = mask_secrets(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False)


FORMATTERS: dict[str, type[logging.Formatter]] = {"text": TextFormatter, "json": JsonFormatter}


def logging_settings(form: str, level: str) -> dict[str, Any]:
    """Return settings for `logging.config.dictConfig`, to the standard error.

    Raises:
        ValueError: `form` is neither `text` nor `json`.
    """
    if form not in FORMATTERS:
        raise ValueError(f"PFL_LOG_FORMAT must be text or json, not {form!r}.")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": FORMATTERS[form]}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": level},
    }


def log_tasks_in_context(settings: dict[str, Any]) -> None:
    """Let this process's Celery app log by `settings`, each task in the context of its message.

    A task's message takes the request that it was sent in along, and names its evaluation itself.
    """

    def configure(**_: Any) -> None:
        logging.config.dictConfig(settings)

    setup_logging.connect(configure, weak=False)
    before_task_publish.connect(_take_request_along)
    task_prerun.connect(_enter)
    task_postrun.connect(_leave)


def _take_request_along(headers: dict[str, Any] | None = None, **_: Any) -> None:
    if headers is not None and (request := _context.get().get("request")):
        headers[REQUEST_HEADER] = request


def _enter(task_id: str, task: Any, args: Any = (), **_: Any) -> None:
    values = {}
    if isinstance(request := getattr(task.request, REQUEST_HEADER, None), str):
        values["request"] = request
    message = args[0] if args else None
    if isinstance(message, dict):
        values |= {
            name: str(message[name])[:40] for name in ("evaluation", "attempt", "step") if name in message
        }
    _tasks[task_id] = _context.set({**_context.get(), **values})


def _leave(task_id: str, **_: Any) -> None:
    if token := _tasks.pop(task_id, None):
        _context.reset(token)
