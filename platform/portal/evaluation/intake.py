"""Takes what workers say about an evaluation: signs of life, and how its steps ended.

Messages may come twice, late or out of order. Only those about the step that an active evaluation is at have
an effect; all others are logged and dropped, so that a dead attempt never overwrites a live one.
"""

import logging
import math
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from pydantic import ValidationError

from evaluator import contracts
from evaluator.contracts import AccountingResult, CommunicationResult, Outcome, ScoringResult, TrackRules
from evaluator.errors import ErrorCode, Problem, refuse, shorten
from portal.evaluation import outcomes
from portal.evaluation.dispatch import send_on_commit
from portal.evaluation.models import ACTIVE_STATES, Evaluation, EvaluationState, StepReport
from portal.evaluation.states import move_evaluation
from portal.submissions.models import Run, RunState
from portal.submissions.states import move_run

logger = logging.getLogger(__name__)

MAX_PROBLEMS = 100
MAX_TRACE_CHARACTERS = 20_000
LARGEST_INTEGER = 2**63 - 1  # that the database can hold
