# docker build -t gitsched .
# docker run --rm -v "$PWD:/repo" gitsched plan
# docker run --rm -v "$PWD:/repo" --user "$(id -u):$(id -g)" gitsched reconcile    (it writes into .git, so as its owner)
# docker run --rm -p 8080:8080 -e GITSCHED_LISTEN=:8080 -e GITSCHED_REPO=https://... gitsched watch    (docs/watch.md)
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS wheel
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:${PYTHON}-slim
# git speaks to remotes, openssh-client carries ssh URLs and ssh signatures; both use the credentials people already have.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git openssh-client \
    && rm -rf /var/lib/apt/lists/*
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links=/wheels gitsched && rm -rf /wheels
# A repository mounted from the host belongs to another user, which git refuses to touch unless told that it is meant. Only the
# mount point is trusted; a mount elsewhere needs --user "$(id -u):$(id -g)", which makes the owner run it.
RUN git config --system --add safe.directory /repo \
    && git config --system --add safe.directory /repo/.git
# A cache that any --user can write; worth a volume for `watch`, and it may be thrown away at any moment.
RUN useradd --create-home --uid 10001 --user-group gitsched && install --directory --mode=1777 /var/cache/gitsched
ENV XDG_CACHE_HOME=/var/cache/gitsched PYTHONUNBUFFERED=1
# As a number: Kubernetes cannot see from a name that it is not root. SIGTERM, which `watch` heeds, is what stops the container.
USER 10001:10001
WORKDIR /repo
ENTRYPOINT ["gitsched"]
CMD ["--help"]
