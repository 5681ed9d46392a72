# The service `tailboard` of docker-compose.yml: the wheel of this checkout, with the example archive in it. No secrets, no root.
FROM python:3.11 AS wheel
WORKDIR /tailboard
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY ingest ingest
COPY mappings mappings
COPY kibana kibana
COPY examples/cbt-archive examples/cbt-archive
RUN pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.11-slim
WORKDIR /tailboard
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels tailboard && useradd --system --no-create-home tailboard && chown tailboard .
COPY examples/cbt-archive examples/cbt-archive
USER tailboard
ENTRYPOINT ["tailboard"]
