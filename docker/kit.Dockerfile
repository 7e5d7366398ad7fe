# The starter kit, for participants: `pfl` with a folder of yours at /work.
#
#   docker build -f docker/kit.Dockerfile -t pfl-docvqa/kit .
#   docker build -f docker/kit.Dockerfile --build-arg TORCH_BACKEND=cu128 -t pfl-docvqa/kit-cuda .
#   docker run --rm -it --user "$(id -u):$(id -g)" -v "$PWD:/work" pfl-docvqa/kit train fedavg --data data/public --base base
#
# The second one needs a host with NVIDIA's container toolkit and `docker run --gpus all`.

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
       --require-hashes -r /requirements/kit.txt
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
    && useradd --uid 10001 --gid pfl --create-home --home-dir /work pfl
COPY --from=build /opt/pfl /opt/pfl
# Matplotlib writes its cache there, whoever runs the container.
ENV PATH=/opt/pfl/bin:$PATH \
    HF_HUB_OFFLINE=1 \
    MPLCONFIGDIR=/tmp/matplotlib \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /work
HEALTHCHECK NONE
ENTRYPOINT ["pfl"]
CMD ["--help"]
