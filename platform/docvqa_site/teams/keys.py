"""The keys that sign a team's training records: registering and revoking them."""

from django.db import IntegrityError, transaction
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.teams.models import Team, TeamKey
from docvqa_site.teams.notifications import notify_members
from docvqa_site.teams.selectors import owns
from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.signing import is_public_key

# Of one team, revoked ones included.
MAX_KEYS = 100


def register_key(team: Team, public_key: str, *, name: str, by: User) -> TeamKey:
    """Register a public key, in hexadecimal; one of the team's current keys is answered with as it is.

    Raises `ProblemError`: `E_SIGNING_KEY` when it is no Ed25519 key, `E_TEAM_KEY` when another team has it, the team
    has revoked it or has too many.
    """
    public_key = _parsed(public_key)
    try:
        with transaction.atomic():
            return _register(team, public_key, name, by)
    except IntegrityError:
        raise _rejected("This key belongs to another team.") from None


@transaction.atomic
def revoke_key(key: TeamKey, *, by: User, organizes: bool = False) -> None:
    """Revoke a key of the team that `by` owns, or organizes. May be called again.

    Raises `ProblemError` (`E_TEAM_OWNER`).
    """
    team = Team.objects.select_for_update(no_key=True).get(pk=key.team_id)
    if not organizes and not owns(by, team):
        raise ProblemError.of(ErrorCode.TEAM_OWNER)
    if end_key(key, by=by):
        who = "An organizer" if organizes else by
        notify_members(
            team,
            f"A signing key of {team} was revoked",
            f"{who} revoked the key {key.fingerprint}. New records signed with this key are rejected.",
            but=by,
        )


def end_key(key: TeamKey, *, by: User) -> bool:
    """Let the site accept nothing that the key signs later, whoever asks for it; return whether it did until now."""
    current = TeamKey.objects.filter(pk=key.pk, revoked_at__isnull=True)
    is_changed = current.update(revoked_at=timezone.now()) > 0
    if is_changed:
        record(by, "team_key.revoked", key, team=key.team_id, public_key=key.public_key)
    return is_changed


def _register(team: Team, public_key: str, name: str, by: User) -> TeamKey:
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    keys = {key.public_key: key for key in team.keys.all()}
    if known := keys.get(public_key):
        if known.revoked_at:
            raise _rejected("Your team revoked this key.")
        return known
    if team.keys.count() >= MAX_KEYS:
        raise _rejected(f"Your team has reached the limit of {MAX_KEYS} keys.")
    key = TeamKey.objects.create(team=team, public_key=public_key, name=name, added_by=by)
    record(by, "team_key.added", key, team=team.pk, public_key=public_key)
    notify_members(
        team,
        f"A signing key was added to your team, {team}",
        f"{by} registered the key {key.fingerprint}. Records signed with this key count as your team's. If you don't "
        "recognize this key, revoke it and contact the organizers.",
    )
    return key


def _parsed(text: str) -> str:
    if not is_public_key(text):
        raise ProblemError.of(
            ErrorCode.SIGNING_KEY,
            message="A public key has 64 hexadecimal digits.",
            where="public_key",
            expected="an Ed25519 public key: 64 hexadecimal digits",
            found=text,
            next_step="Copy what `pfl key show` prints.",
        )
    return bytes.fromhex(text).hex()


def _rejected(message: str) -> ProblemError:
    return ProblemError.of(ErrorCode.TEAM_KEY, message=message, where="public_key")
