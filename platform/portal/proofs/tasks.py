"""The task of proofs, which the clock calls."""

from portal.celery import DRAW_TASK, app
from portal.proofs.drawing import draw_next

app.task(name=DRAW_TASK)(draw_next)
