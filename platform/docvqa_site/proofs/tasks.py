"""The task of proofs, which the clock calls."""

from docvqa_site.celery import DRAW_TASK, app
from docvqa_site.proofs.drawing import draw_next

app.task(name=DRAW_TASK)(draw_next)
