# An evaluation worker, for CPUs by default:
#
#   docker build -f docker/worker.Dockerfile -t pfl-docvqa/worker-cpu .
#   docker build -f docker/worker.Dockerfile --build-arg TORCH_BACKEND=cu128 -t pfl-docvqa/worker-cuda .
#
# The second one needs a host with NVIDIA's container toolkit; the CUDA libraries come with torch.

ARG BASE=python:3.11.14-slim-bookworm

FROM ${BASE} AS build
ARG TORCH_BACKEND=cpu
# Where uv finds torch, for example `--find-links /wheels` for a folder that is mounted during the build.
ARG TORCH_SOURCE="--torch-backend ${TORCH_BACKEND}"
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY docker/requirements /requirements
COPY constraints.txt /requirements/
# torch and what it brings along are pinned by version: the builds for CPUs and for each CUDA have hashes of their own.
RUN python3 -m venv /build \
    && /build/bin/pip install --no-cache-dir --require-hashes -r /requirements/build.txt \
    && python3 -m venv --without-pip /opt/pfl \
    && /build/bin/uv pip install --python /opt/pfl/bin/python --no-cache --compile-bytecode \
       ${TORCH_SOURCE} -c /requirements/constraints.txt torch
RUN /build/bin/uv pip install --python /opt/pfl/bin/python --no-cache --compile-bytecode \
       --require-hashes -r /requirements/worker.txt
COPY pyproject.toml hatch_build.py README.md LICENSE NOTICE /source/
COPY docs /source/docs
COPY evaluator /source/evaluator
COPY starter_kit /source/starter_kit
WORKDIR /source
RUN /build/bin/python -m hatchling build -t wheel -d /wheel \
    && /build/bin/uv pip install --python /opt/pfl/bin/python --no-cache --compile-bytecode --no-deps /wheel/*.whl \
    && rm -f /opt/pfl/.lock

FROM ${BASE}
RUN groupadd --gid 10001 pfl \
    && useradd --uid 10001 --gid pfl --no-create-home --home-dir /var/lib/pfl pfl \
    && install -d -m 0700 -o pfl -g pfl /var/lib/pfl
COPY --from=build /opt/pfl /opt/pfl
ENV PATH=/opt/pfl/bin:$PATH \
    HF_HUB_OFFLINE=1 \
    PFL_EVALUATOR_HOME=/var/lib/pfl \
    PFL_LOG_FORMAT=json \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /var/lib/pfl
# It serves nothing that could be asked. The site knows its workers by their heartbeats.
HEALTHCHECK NONE
CMD ["celery", "-A", "evaluator.worker", "worker", "-P", "solo", "-Q", "evaluator"]
