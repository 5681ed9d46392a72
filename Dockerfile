# The service `tailboard` of docker-compose.yml: this checkout, installed, beside the example archive. No secrets, no root.
FROM python:3.11-slim
WORKDIR /tailboard
COPY pyproject.toml README.md LICENSE ./
COPY ingest ingest
COPY mappings mappings
COPY kibana kibana
RUN pip install --no-cache-dir . && useradd --system --no-create-home tailboard && chown tailboard .
COPY examples/cbt-archive examples/cbt-archive
USER tailboard
ENTRYPOINT ["tailboard"]
