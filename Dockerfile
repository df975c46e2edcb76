# docker compose up --build   starts PostgreSQL, fills it and serves it. With SQLite and this image alone:
#   docker build -t vmsizes .
#   docker run --read-only --tmpfs /tmp -v vmsizes:/data -p 8000:8000 vmsizes
# Its first start fills /data/vmsizes.db with the seeds.

FROM node:22-slim AS assets
WORKDIR /src/app/web/frontend
COPY app/web/frontend/package.json app/web/frontend/package-lock.json ./
RUN npm ci --ignore-scripts
COPY app/web/frontend ./
RUN node build.mjs

FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1
WORKDIR /src
RUN python3 -m venv /opt/vmsizes
COPY requirements.lock ./
RUN /opt/vmsizes/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY app app
COPY migrations migrations
COPY seeds seeds
COPY --from=assets /src/app/web/static/dist app/web/static/dist
# Nothing is written beside the code at run time, so it is compiled here; what builds and installs is not needed then.
RUN /opt/vmsizes/bin/pip install --no-deps --no-build-isolation . \
 && /opt/vmsizes/bin/pip uninstall --yes --quiet hatchling trove-classifiers editables setuptools pip \
 && /opt/vmsizes/bin/python3 -m compileall -q -j 0 /opt/vmsizes/lib \
 && /opt/vmsizes/bin/python3 -c "from app.web.rendering import environment as e; [*map(e().get_template, e().list_templates())]"

FROM python:3.11-slim
LABEL org.opencontainers.image.title="vmsizes" \
      org.opencontainers.image.description="Look up, compare and cost cloud VM sizes" \
      org.opencontainers.image.licenses="MIT"
# The base image comes without the compiled form of the standard library.
RUN python3 -m compileall -q -j 0 -x "lib2to3|/test" "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
 && useradd --uid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin vmsizes \
 && install --directory --owner=vmsizes --mode=0750 /data
COPY --from=build /opt/vmsizes /opt/vmsizes
ENV PATH=/opt/vmsizes/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    VMSIZES_HOST=0.0.0.0
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=180s --retries=3 CMD ["python3", "-c", "\
import http.client, os, sys; \
c = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('VMSIZES_PORT', '8000')), timeout=2); \
c.request('GET', '/healthz'); \
sys.exit(c.getresponse().status != 200)"]
CMD ["vmsizes", "serve"]
