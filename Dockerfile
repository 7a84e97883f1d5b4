# The image of shell-operator for those who have Docker, Podman or buildah: docker build --tag shell-operator .
# `make image` makes the same one without any of them.
#
# Build arguments: PACKAGES, Debian packages for hooks besides bash, curl and jq; KUBECTL_VERSION, one that
# artifacts/kubectl.yaml has.
FROM docker.io/library/rust:1.95-bookworm AS build
ARG KUBECTL_VERSION=
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package shell-operator \
 && bash deploy/image/files.sh /image target/release/shell-operator

FROM docker.io/library/debian:bookworm-slim
ARG PACKAGES=python3
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bash ca-certificates curl jq $PACKAGES \
 && rm -rf /var/lib/apt/lists/* \
 && echo shell-operator:x:65532:65532::/tmp:/bin/bash >>/etc/passwd \
 && echo shell-operator:x:65532: >>/etc/group
COPY --from=build /image /
USER 65532:65532
ENV HOME=/tmp LOG_TYPE=json SHELL_OPERATOR_HOOKS_DIR=/hooks
# The operator itself is process 1: it passes signals on to hooks and takes care of their orphans.
ENTRYPOINT ["/shell-operator"]
CMD ["start"]
