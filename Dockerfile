# docker build -t gitsched .
# docker run --rm -v "$PWD:/repo" gitsched plan
# docker run --rm -v "$PWD:/repo" --user "$(id -u):$(id -g)" -e XDG_CACHE_HOME=/tmp gitsched reconcile    (as the owner of .git)
# docker run --rm -p 8080:8080 -e GITSCHED_LISTEN=:8080 -e GITSCHED_REPO=https://... gitsched watch    (docs/watch.md)
#
# Images are pinned by digest, dependencies by the hashes in requirements/. Renew the digests with
#   docker buildx imagetools inspect python:3.13-slim
#   docker buildx imagetools inspect registry.k8s.io/kubectl:v1.34.1
ARG PYTHON_IMAGE=python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
ARG KUBECTL_IMAGE=registry.k8s.io/kubectl:v1.34.1@sha256:59bafa07ff3a6d4b417e7633ddb9d79a9606ca98bf64bac080b3e65748669250

FROM ${KUBECTL_IMAGE} AS kubectl

FROM ${PYTHON_IMAGE} AS wheel
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements/build.txt \
    && pip download --no-cache-dir --require-hashes --only-binary :all: --dest /wheels -r requirements/run.txt \
    && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .

FROM ${PYTHON_IMAGE}
# git for remotes, openssh-client for ssh URLs and ssh signatures. The distribution offers one version of each, the one with its security fixes.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git openssh-client \
    && rm -rf /var/lib/apt/lists/*
# kubectl for `gitsched apply`.
COPY --from=kubectl /bin/kubectl /usr/local/bin/kubectl
COPY --from=wheel /wheels /wheels
# Only the wheels of the stage above can be installed.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir --no-index --find-links=/wheels gitsched && rm -rf /wheels
# A repository mounted from the host belongs to another user, which git rejects without safe.directory. Only the mount point is
# trusted; a mount elsewhere needs --user "$(id -u):$(id -g)", which makes the owner run it.
RUN git config --system --add safe.directory /repo \
    && git config --system --add safe.directory /repo/.git
# The cache, for this user and, as OpenShift needs it, for any user in group 0. It may be deleted at any time; for `watch`, use a volume.
RUN useradd --create-home --uid 10001 --user-group gitsched \
    && install --directory --owner=10001 --group=0 --mode=0770 /var/cache/gitsched
ENV XDG_CACHE_HOME=/var/cache/gitsched PYTHONUNBUFFERED=1
# A numeric id, because runAsNonRoot of Kubernetes cannot verify a name. SIGTERM stops `watch` gracefully.
USER 10001:10001
WORKDIR /repo
ENTRYPOINT ["gitsched"]
CMD ["--help"]
