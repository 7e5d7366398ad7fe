# The site: web server, intake, clock, mail and management commands, each by its own command.
#
#   docker build -f docker/site.Dockerfile -t pfl-docvqa/site .

ARG BASE=python:3.11.14-slim-bookworm

FROM ${BASE} AS build
# Debian's mirrors hold one version of a package at a time.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev libpq-dev python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY docker/requirements /requirements
RUN python3 -m venv /build \
    && /build/bin/pip install --no-cache-dir --require-hashes -r /requirements/build.txt \
    && python3 -m venv --without-pip /opt/pfl \
    && /build/bin/uv pip install --python /opt/pfl/bin/python --no-cache --compile-bytecode --no-binary psycopg2 \
       --require-hashes -r /requirements/site.txt
COPY pyproject.toml hatch_build.py README.md LICENSE NOTICE /source/
COPY docs /source/docs
COPY platform /source/platform
COPY evaluator /source/evaluator
COPY starter_kit /source/starter_kit
WORKDIR /source
RUN /build/bin/python -m hatchling build -t wheel -d /wheel
WORKDIR /source/platform
RUN /build/bin/python -m hatchling build -t wheel -d /wheel \
    && /build/bin/uv pip install --python /opt/pfl/bin/python --no-cache --compile-bytecode --no-deps /wheel/*.whl \
    && rm -f /opt/pfl/.lock
# Hashed and compressed, in the image, so that they are always those of its version.
RUN PFL_HOME=/tmp/pfl PFL_STATIC_ROOT=/opt/pfl/static DJANGO_SETTINGS_MODULE=docvqa_site.settings \
    /opt/pfl/bin/python -m django collectstatic --noinput \
    && chmod -R a+rX /opt/pfl/static

FROM ${BASE}
# postgresql-client is for backups: its version must not be older than the server's.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libpq5 postgresql-client \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 pfl \
    && useradd --uid 10001 --gid pfl --no-create-home --home-dir /var/lib/pfl pfl \
    && install -d -m 0700 -o pfl -g pfl /var/lib/pfl
COPY --from=build /opt/pfl /opt/pfl
ENV PATH=/opt/pfl/bin:$PATH \
    DJANGO_SETTINGS_MODULE=docvqa_site.settings \
    PFL_HOME=/var/lib/pfl \
    PFL_STATIC_ROOT=/opt/pfl/static \
    PFL_LOG_FORMAT=json \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /var/lib/pfl
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s \
    CMD ["python", "-m", "docvqa_site.operations.probe", "alive"]
CMD ["gunicorn", "-c", "python:docvqa_site.web_server", "docvqa_site.wsgi", "--bind=0.0.0.0:8000"]
