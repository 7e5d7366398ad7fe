"""The site's settings: one module, everything from the environment.

Without any variable the site runs on embedded back ends under `PFL_HOME`: SQLite, a folder store and a broker
file. A site whose `PFL_SITE_URL` isn't on this machine is a public one, and unsafe values are rejected then.
"""

import os
import secrets
import stat
import sys
import zlib
from email.utils import parseaddr
from pathlib import Path
from urllib.parse import unquote, urlsplit

import dj_database_url
import django_stubs_ext
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from docvqa_site.uploads.location import Bucket, store_location
from evaluator.worker.broker import broker_settings
from evaluator.worker.logs import logging_settings

# Django's generic classes, such as `admin.ModelAdmin`, take their type argument at run time from here on.
django_stubs_ext.monkeypatch()

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(os.environ.get("PFL_HOME", ROOT / "var")).resolve()
# Whatever a process of the site writes, such as its database, messages and mails, is its account's alone. Here,
# because every entry point passes through here before it writes anything.
os.umask(0o077)
HOME.mkdir(parents=True, exist_ok=True)
# It holds the secret key, mails with reset links and signed addresses. The group is left to whoever runs the site: a
# proxy may send files from here.
if HOME.stat().st_uid == os.geteuid() and HOME.stat().st_mode & stat.S_IRWXO:
    HOME.chmod(stat.S_IMODE(HOME.stat().st_mode) & ~stat.S_IRWXO)

SITE_URL = os.environ.get("PFL_SITE_URL", "http://127.0.0.1:8000").rstrip("/")
_site = urlsplit(SITE_URL)
PUBLIC = _site.hostname not in {"127.0.0.1", "localhost", "::1"}
DEBUG = os.environ.get("PFL_DEBUG", "") == "1"


def _stored_secret_key() -> str:
    """Return the key of an embedded site, which is made once and stored beside its database."""
    path = HOME / "secret_key"
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(64))
    except FileExistsError:
        pass
    return path.read_text()


SECRET_KEY = os.environ.get("PFL_SECRET_KEY", "") or ("" if PUBLIC else _stored_secret_key())
# Earlier keys, newest first, while a new one replaces them: what they encrypted and signed stays valid.
SECRET_KEY_FALLBACKS = os.environ.get("PFL_SECRET_KEY_FALLBACKS", "").split()
ALLOWED_HOSTS = [_site.hostname or "", *os.environ.get("PFL_ALLOWED_HOSTS", "").split()]
CSRF_TRUSTED_ORIGINS = [SITE_URL]

INSTALLED_APPS = [
    "docvqa_site.ui",
    "docvqa_site.accounts",
    "docvqa_site.notifications",
    "docvqa_site.teams",
    "docvqa_site.challenge",
    "docvqa_site.calculator",
    "docvqa_site.docs",
    "docvqa_site.about",
    "docvqa_site.news",
    "docvqa_site.uploads",
    "docvqa_site.downloads",
    "docvqa_site.submissions",
    "docvqa_site.evaluation",
    "docvqa_site.proofs",
    "docvqa_site.reviews",
    "docvqa_site.boards",
    "docvqa_site.pages",
    "docvqa_site.people",
    "docvqa_site.audit",
    "docvqa_site.liveness",
    "docvqa_site.mail",
    "docvqa_site.api",
    "docvqa_site.operations",
    "docvqa_site.organizers",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.github",
    "allauth.socialaccount.providers.orcid",
    "csp",
    "django_htmx",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "docvqa_site.operations.requests.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "docvqa_site.null_characters.reject_null_characters",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_permissions_policy.PermissionsPolicyMiddleware",
    "docvqa_site.ui.caching.PrivatePages",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "docvqa_site.accounts.staff.RequireSecondFactor",
    "docvqa_site.ui.method_not_allowed.MethodNotAllowedPage",
    "docvqa_site.api.errors.MethodNotAllowedProblem",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "docvqa_site.urls"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": dj_database_url.parse(os.environ.get("PFL_DATABASE_URL") or f"sqlite:///{HOME}/db.sqlite3")
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = {
        # Writers queue up instead of failing, and readers never wait for them.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
    # Every command would warn that SQLite leaves the columns out that PostgreSQL's indexes include.
    SILENCED_SYSTEM_CHECKS = ["models.W040"]
else:
    # For a new connection PostgreSQL starts a process, which looks up again what queries name: that takes longer than
    # the queries. A connection that broke is replaced.
    DATABASES["default"] |= {"CONN_MAX_AGE": 300, "CONN_HEALTH_CHECKS": True}

CACHE_URL = os.environ.get("PFL_CACHE_URL", "")


def _cache(name: str, entries: int) -> dict[str, object]:
    """Return a cache of so many entries; Redis limits its memory itself, and removes what has expired."""
    if CACHE_URL:
        backend = "docvqa_site.json_cache.RedisCache"
        return {"BACKEND": backend, "LOCATION": CACHE_URL, "KEY_PREFIX": f"pfl-{name}"}
    kind = "DatabaseCache" if PUBLIC else "LocMemCache"
    return {
        "BACKEND": f"docvqa_site.json_cache.{kind}",
        "LOCATION": f"cache_{name}",
        "OPTIONS": {"MAX_ENTRIES": entries},
    }


# Nothing but the counters of limits is in the default cache, in which allauth counts attempts to log in too: other
# entries would push them out, and an attacker could begin again.
CACHES = {
    "default": _cache("limits", 100_000),
    "pages": _cache("pages", 500),
    "answers": _cache("answers", 300),
}

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_SIGNUP_FORM_CLASS = "docvqa_site.accounts.forms.SignupForm"
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_UNIQUE_EMAIL = True
ACCOUNT_PREVENT_ENUMERATION = True
# One address per person; a new one replaces it once verified.
ACCOUNT_CHANGE_EMAIL = True
# Attempts to log in are limited by the visitor's address, not by that of the proxies before a public site.
ALLAUTH_TRUSTED_PROXY_COUNT = int(os.environ.get("PFL_TRUSTED_PROXIES", "1" if PUBLIC else "0"))
# Of guesses, by network, by account and network, by account, and by browser; see accounts.attempts, which counts
# in place of allauth.
ACCOUNT_RATE_LIMITS = {
    "login_failed": None,
    "attempt": "10/m/ip,5/5m/key",
    "attempt_account": "50/h/key",
    "attempt_device": "5/5m/key",
}
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[PFL-DocVQA] "

ACCOUNT_ADAPTER = "docvqa_site.accounts.adapters.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "docvqa_site.accounts.signup.LoginWithPasswordForm",
    "reauthenticate": "docvqa_site.accounts.signup.PasswordAgainForm",
    "signup": "docvqa_site.accounts.signup.NewAccountForm",
    "reset_password": "docvqa_site.accounts.signup.ForgottenPasswordForm",
    "reset_password_from_key": "docvqa_site.accounts.signup.PasswordFromLinkForm",
    "add_email": "docvqa_site.accounts.signup.NewAddressForm",
    "change_password": "docvqa_site.accounts.signup.NewPasswordForm",
}
# Where the address is confirmed in the browser that signed up, nobody has to type the password again.
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True
# A change of password, email address, second factor or token needs the password once more, and is reported by mail.
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 900
ACCOUNT_EMAIL_NOTIFICATIONS = True
# How long people who asked to be remembered stay logged in; others are logged out when they close the browser.
SESSION_COOKIE_AGE = int(os.environ.get("PFL_SESSION_HOURS", "24")) * 3600
MFA_ADAPTER = "docvqa_site.accounts.adapters.SecondFactorAdapter"
MFA_FORMS = {
    "authenticate": "docvqa_site.accounts.second_factor_forms.LoginCodeForm",
    "reauthenticate": "docvqa_site.accounts.second_factor_forms.ConfirmationCodeForm",
    "activate_totp": "docvqa_site.accounts.second_factor_forms.FirstCodeForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "PFL-DocVQA"
# The clock of a phone may be half a minute off.
MFA_TOTP_TOLERANCE = 1
# Browsers treat http://localhost as secure.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not PUBLIC

# Signing in by GitHub or ORCID is offered where the environment has the site's keys; see docvqa_site.accounts.sign_in.
SOCIALACCOUNT_PROVIDERS: dict[str, dict[str, object]] = {
    name: {"APPS": [{"client_id": client, "secret": secret}]}
    for name in ("github", "orcid")
    if (client := os.environ.get(f"PFL_{name.upper()}_CLIENT_ID"))
    and (secret := os.environ.get(f"PFL_{name.upper()}_CLIENT_SECRET"))
}
# Such as sandbox.orcid.org, to try it out.
ORCID_DOMAIN = os.environ.get("PFL_ORCID_DOMAIN", "orcid.org")
if "orcid" in SOCIALACCOUNT_PROVIDERS:
    SOCIALACCOUNT_PROVIDERS["orcid"]["BASE_DOMAIN"] = ORCID_DOMAIN
SOCIALACCOUNT_ADAPTER = "docvqa_site.accounts.sign_in.SocialAccountAdapter"
SOCIALACCOUNT_FORMS = {"signup": "docvqa_site.accounts.sign_in.LinkedSignupForm"}
# Nobody gets an account without having seen what it is called and where its mails go, ...
SOCIALACCOUNT_AUTO_SIGNUP = False
# ... and an address that a provider vouches for opens no existing account.
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False

# All mail goes through the outbox; the mail process delivers it with the second backend.
EMAIL_BACKEND = "docvqa_site.mail.backend.OutboxBackend"
MAIL_DELIVERY_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = HOME / "mail"
EMAIL_TIMEOUT = 20
if _mail := os.environ.get("PFL_SMTP_URL"):
    # smtp://user:password@host:587 (STARTTLS), smtps://… (TLS), or smtp+plain://… for a server beside the site.
    _smtp = urlsplit(_mail)
    MAIL_DELIVERY_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    EMAIL_HOST, EMAIL_PORT = (
        _smtp.hostname or "",
        _smtp.port or {"smtps": 465, "smtp": 587}.get(_smtp.scheme, 25),
    )
    # A character that is special in a URL is written as %40 and the like.
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_smtp.username or ""), unquote(_smtp.password or "")
    EMAIL_USE_SSL, EMAIL_USE_TLS = _smtp.scheme == "smtps", _smtp.scheme == "smtp"
DEFAULT_FROM_EMAIL = os.environ.get("PFL_FROM_EMAIL", "PFL-DocVQA benchmark <benchmark@localhost>")

# Where /.well-known/security.txt sends who has found a vulnerability: a mailto: or https:// address.
SECURITY_CONTACT = os.environ.get("PFL_SECURITY_CONTACT") or f"mailto:{parseaddr(DEFAULT_FROM_EMAIL)[1]}"

FORM_RENDERER = "docvqa_site.ui.forms.FormRenderer"
# Where the source code is, for every page's footer and the links of the documentation to files of the code.
SOURCE_URL = os.environ.get("PFL_SOURCE_URL", "")
# How people reach the organizers, a mailto: or https: address, and who they are.
CONTACT = os.environ.get("PFL_CONTACT", "")
ORGANIZERS = os.environ.get("PFL_ORGANIZERS", "")
# A line at the top of every page, of a site that has to say that it is a trial.
NOTICE = os.environ.get("PFL_NOTICE", "")
# Who is responsible for people's data, with an address; on which legal basis it is stored; and whom to ask about it.
CONTROLLER = os.environ.get("PFL_CONTROLLER", "")
LEGAL_BASIS = os.environ.get("PFL_LEGAL_BASIS", "")
PRIVACY_CONTACT = os.environ.get("PFL_PRIVACY_CONTACT") or CONTACT
# Where the data set is published, beside the files that the data page offers itself.
DATA_URL = os.environ.get("PFL_DATA_URL", "")
# The data set on the Hugging Face Hub that results are exported for, such as "organization/name".
HUB_DATASET = os.environ.get("PFL_HUB_DATASET", "")

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "docvqa_site.ui.formats"

STATIC_URL = "static/"
STATIC_ROOT = Path(os.environ.get("PFL_STATIC_ROOT") or HOME / "static")
STATIC_ROOT.mkdir(exist_ok=True)
# After `collectstatic`, files have a hash in their names, so that browsers keep them for a year, and are compressed. A
# site that hasn't run it, as the embedded one, serves them straight from the source tree.
_collected = (STATIC_ROOT / "staticfiles.json").is_file() or "collectstatic" in sys.argv
WHITENOISE_USE_FINDERS = not _collected
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if _collected
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# Uploads go into a folder, or into a bucket if PFL_STORE_URL names one.
_store = store_location(os.environ.get("PFL_STORE_URL") or (HOME / "store").as_uri(), os.environ)
STORE_BUCKET = _store if isinstance(_store, Bucket) else None
STORE_FOLDER = HOME / "store" if isinstance(_store, Bucket) else _store
# What examinations need, on the machine that takes them: the data folder with the training split, and the base weights
# and test sets that a worker has.
EXAMINATION_DATA = os.environ.get("PFL_EXAMINATION_DATA", "")
EVALUATOR_HOME = Path(os.environ.get("PFL_EVALUATOR_HOME") or HOME / "evaluator")
# The tracks' base weights, as on the workers: new checkpoints are compared with their headers, and participants' own
# copies with their hashes. A site may have none.
REFERENCES_FOLDER = Path(os.environ.get("PFL_REFERENCES") or EVALUATOR_HOME / "references")
EXAMINATION_REPEATS = int(os.environ.get("PFL_EXAMINATION_REPEATS", "5"))
EXAMINATION_HOURS = float(os.environ.get("PFL_EXAMINATION_HOURS", "24"))
# Where a proxy in front of the site sends the folder's files by itself, at X-Accel-Redirect; empty without one.
ACCEL_PREFIX = os.environ.get("PFL_ACCEL_PREFIX", "")
# Of one web process, as in `docvqa_site.web_server`.
WEB_THREADS = int(os.environ.get("PFL_WEB_THREADS") or 16)
# New uploads are rejected when the folder's disk would have less than this left, and a site whose own disk has less
# isn't ready, ...
DISK_RESERVE_BYTES = int(os.environ.get("PFL_DISK_RESERVE_BYTES", str(2**30)))
# ... or all teams' files together would exceed this; 0 for no such limit.
STORE_BUDGET_BYTES = int(os.environ.get("PFL_STORE_BUDGET_BYTES", "0"))
# Of one team's drafts and unfinished uploads.
TEAM_STORAGE_BYTES = int(os.environ.get("PFL_TEAM_STORAGE_BYTES", str(20 * 2**30)))
# How large all messages of a run may be together to be attached as a whole; of a larger run, rounds are drawn.
WHOLE_MESSAGES_BYTES = int(os.environ.get("PFL_WHOLE_MESSAGES_BYTES", str(2**30)))
# After how many days things are removed; see docvqa_site/periods.py. 0 for never.
RETENTION_UPLOAD_DAYS = int(os.environ.get("PFL_RETENTION_UPLOAD_DAYS", "7"))
RETENTION_DRAFT_DAYS = int(os.environ.get("PFL_RETENTION_DRAFT_DAYS", "90"))
RETENTION_CHECKPOINT_DAYS = int(os.environ.get("PFL_RETENTION_CHECKPOINT_DAYS", "0"))
RETENTION_NOTIFICATION_DAYS = int(os.environ.get("PFL_RETENTION_NOTIFICATION_DAYS", "90"))
RETENTION_MAIL_DAYS = int(os.environ.get("PFL_RETENTION_MAIL_DAYS", "30"))
# How long the URLs that move files are valid.
UPLOAD_PART_SIZE_BYTES = 8 * 1024 * 1024
UPLOAD_URL_SECONDS = 900
DOWNLOAD_URL_SECONDS = 900
# Forms and JSON; parts of files never pass through here.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

# An evaluation whose worker sends no heartbeat for this long is started again at once, up to this number of losses.
EVALUATION_SILENCE_SECONDS = int(os.environ.get("PFL_EVALUATION_SILENCE_SECONDS", "60"))
EVALUATION_LOSSES = 5
# The pauses after the platform's faults. Once they are used up, the next fault fails the run.
EVALUATION_BACKOFF_SECONDS = [
    float(seconds) for seconds in os.environ.get("PFL_EVALUATION_BACKOFF_SECONDS", "60 600 3600").split()
]
# The fewest steps that wait in the broker at a time; with more workers there are more, one for each and one besides.
EVALUATION_SENT_STEPS = int(os.environ.get("PFL_EVALUATION_SENT_STEPS", "2"))
# The organizers are notified when steps have waited for this long and no worker has been seen.
EVALUATION_UNATTENDED_SECONDS = int(os.environ.get("PFL_EVALUATION_UNATTENDED_SECONDS", "300"))
# A queue is paused when many runs fail within the first period; while it is, one step is tried in each second period.
EVALUATION_OUTAGE_SECONDS = 600
EVALUATION_PROBE_SECONDS = float(os.environ.get("PFL_EVALUATION_PROBE_SECONDS", "30"))
WATCHDOG_SECONDS = int(os.environ.get("PFL_WATCHDOG_SECONDS", "10"))

BROKER_URL = os.environ.get("PFL_BROKER_URL") or f"sqlite:///{HOME}/broker.sqlite3"
CELERY = broker_settings(BROKER_URL)

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# A form of the site begins the sign-in, which then leads there.
_SIGN_IN_ORIGINS = {"github": "https://github.com", "orcid": f"https://{ORCID_DOMAIN}"}
CONTENT_SECURITY_POLICY["DIRECTIVES"]["form-action"] += [
    _SIGN_IN_ORIGINS[name] for name in SOCIALACCOUNT_PROVIDERS
]
if STORE_BUCKET:
    # The browser sends the parts of a file straight there.
    CONTENT_SECURITY_POLICY["DIRECTIVES"]["connect-src"] = [SELF, STORE_BUCKET.origin]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC
if PUBLIC:
    # No other host of the domain, and no page without TLS, can set cookies of these names.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
SECURE_SSL_REDIRECT = PUBLIC
# Probes ask the process itself, not the proxy.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PUBLIC else None
SECURE_HSTS_SECONDS = 31_536_000 if PUBLIC else 0
# Only the owner of the domain knows whether all of its other sites have TLS as well.
SECURE_HSTS_INCLUDE_SUBDOMAINS = os.environ.get("PFL_HSTS_SUBDOMAINS", "") == "1"
SECURE_HSTS_PRELOAD = os.environ.get("PFL_HSTS_PRELOAD", "") == "1"
_UNUSED_FEATURES = (
    "accelerometer",
    "autoplay",
    "camera",
    "display-capture",
    "encrypted-media",
    "fullscreen",
    "geolocation",
    "gyroscope",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "screen-wake-lock",
    "usb",
    "xr-spatial-tracking",
)
_OWN_FEATURES = ("clipboard-write", "publickey-credentials-create", "publickey-credentials-get")
PERMISSIONS_POLICY: dict[str, list[str]] = {
    **{feature: [] for feature in _UNUSED_FEATURES},
    **{feature: ["self"] for feature in _OWN_FEATURES},
}

LOGGING = logging_settings(os.environ.get("PFL_LOG_FORMAT", "text"), os.environ.get("PFL_LOG_LEVEL", "INFO"))

# How often the processes beside the web server check in, and after how long they count as silent.
LIVENESS_SECONDS = 10
LIVENESS_LATE_SECONDS = int(os.environ.get("PFL_LIVENESS_LATE_SECONDS", "60"))
# Without a token, metrics are for private addresses.
METRICS_TOKEN = os.environ.get("PFL_METRICS_TOKEN", "")


# The size of 50 random digits when compressed; a short text that is repeated takes less.
MIN_COMPRESSED_KEY_BYTES = 38


def _missing_for_visitors() -> list[str]:
    """Return what a public site lacks that its visitors need to take part: who runs it, and where things are."""
    problems = []
    if not CONTACT.startswith(("mailto:", "https:")):
        problems.append("PFL_CONTACT must say how people reach the organizers: a mailto: or https: address")
    if not ORGANIZERS.strip():
        problems.append("PFL_ORGANIZERS must name who runs the benchmark, with affiliations")
    if not CONTROLLER.strip():
        problems.append(
            "PFL_CONTROLLER must name who is responsible for people's data, with a postal address"
        )
    if not LEGAL_BASIS.strip():
        problems.append("PFL_LEGAL_BASIS must say on which legal basis the site stores people's data")
    if not PRIVACY_CONTACT.startswith(("mailto:", "https:")):
        problems.append("PFL_PRIVACY_CONTACT must say whom to ask about data: a mailto: or https: address")
    for name, address in (("PFL_SOURCE_URL", SOURCE_URL), ("PFL_DATA_URL", DATA_URL)):
        if not address.startswith("https:"):
            problems.append(f"{name} must be the https: address that the site's pages link to")
    return problems


def _reject_unsafe_values() -> None:
    """Stop a public site from starting with a value that is only safe on one's own machine."""
    problems = []
    if _site.scheme != "https":
        problems.append("PFL_SITE_URL must start with https:// for a site that isn't on this machine")
    if DEBUG:
        problems.append("PFL_DEBUG=1 shows source code and settings to visitors")
    if len(SECRET_KEY) < 50 or len(zlib.compress(SECRET_KEY.encode())) < MIN_COMPRESSED_KEY_BYTES:
        problems.append("PFL_SECRET_KEY must be a random string of 50 characters or more")
    if "*" in ALLOWED_HOSTS:
        problems.append(
            "PFL_ALLOWED_HOSTS must name the hosts: with * anyone's name would appear in mailed links"
        )
    if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
        problems.append("PFL_DATABASE_URL must name a PostgreSQL database")
    if BROKER_URL.startswith("sqlite:"):
        problems.append("PFL_BROKER_URL must name a Redis or RabbitMQ server")
    if HOME.stat().st_mode & stat.S_IRWXO:
        problems.append(f"PFL_HOME holds secrets, and everyone on the machine can read it: chmod o= {HOME}")
    if "PFL_SMTP_URL" not in os.environ:
        problems.append("PFL_SMTP_URL is needed to verify email addresses")
    if not parseaddr(DEFAULT_FROM_EMAIL)[1].count("@") or DEFAULT_FROM_EMAIL.endswith("@localhost>"):
        problems.append("PFL_FROM_EMAIL must be an address of your own")
    problems += _missing_for_visitors()
    if problems:
        raise ImproperlyConfigured("Not starting a public site:\n  " + "\n  ".join(problems))


if PUBLIC and "collectstatic" not in sys.argv:
    _reject_unsafe_values()
