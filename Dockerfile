# The images of cipherd. `deploy/image/build TARGET` builds one, labelled with its version and revision:
#
#   cpu        the daemon for machines without a GPU
#   cuda       the daemon with the CUDA device; libcuda.so.1 comes from the container runtime
#   client     cipherctl and the demo's client, which hold secret keys; the daemon's images do not even link that code
#   programs   the deployed programs, for a volume of the daemon
#
# An image is what its programs link and nothing else: Debian's shared libraries at Debian's places, the very ones that
# the tests ran with, listed for scanners; no shell, no package manager. Programs are a volume of the daemon and not in
# its image: models change on a schedule of their own, and by SIGHUP without a restart.

ARG DEBIAN=docker.io/library/debian:12
# Lends /usr/local/cuda-13.0 to the builder. Nothing else of it is used, and no file of it is in an image.
ARG CUDA_TOOLKIT=docker.io/nvidia/cuda:13.0.1-devel-ubuntu24.04

FROM ${DEBIAN} AS builder
WORKDIR /source
COPY deploy/install-dependencies deploy/
RUN deploy/install-dependencies --build
# What the daemon expects to be there: the places of its volumes, whose owner and mode a fresh volume takes over.
RUN install -D --directory --mode=0755 /skeleton/programs \
    && install --directory --mode=0700 --owner=65532 --group=65532 /skeleton/keys
COPY . .
ENV LANG=C.UTF-8 CCACHE_BASEDIR=/source CCACHE_NOHASHDIR=1

FROM builder AS cpu-builder
ARG JOBS
RUN --mount=type=cache,target=/root/.cache/ccache \
    cmake --preset release -Wno-dev -DCIPHERD_CUDA=OFF -DBUILD_TESTING=OFF \
    && cmake --build --preset release --parallel "${JOBS:-$(nproc)}" --target cipherd
RUN deploy/image/collect-root /image build/release/server/cipherd

FROM cpu-builder AS client-builder
ARG JOBS
RUN --mount=type=cache,target=/root/.cache/ccache \
    cmake --build --preset release --parallel "${JOBS:-$(nproc)}" --target cipherctl cipherd-demo
RUN deploy/image/collect-root /client-image build/release/client/cipherctl build/release/client/cipherd-demo

FROM scratch AS programs
LABEL org.opencontainers.image.title="cipherd-programs" \
      org.opencontainers.image.description="Programs that cipherd serves"
COPY deploy/programs /

FROM scratch AS client
LABEL org.opencontainers.image.title="cipherctl" \
      org.opencontainers.image.description="Client of cipherd: encrypts, evaluates, decrypts"
COPY --from=client-builder /client-image /
USER 65532:65532
ENTRYPOINT ["/usr/bin/cipherctl"]

FROM scratch AS daemon
LABEL org.opencontainers.image.title="cipherd" \
      org.opencontainers.image.description="A daemon that computes on encrypted data"
COPY --from=builder /skeleton /
COPY deploy/image/cipherd.conf /etc/cipherd/cipherd.conf
USER 65532:65532
VOLUME ["/keys"]
EXPOSE 7480 7481 9480
HEALTHCHECK --interval=15s --timeout=6s --start-period=10m --retries=3 \
  CMD ["/usr/bin/cipherd", "--probe", "127.0.0.1:7481"]
ENTRYPOINT ["/usr/bin/cipherd", "--config", "/etc/cipherd/cipherd.conf"]

FROM daemon AS cpu
COPY --from=cpu-builder /image /

FROM ${CUDA_TOOLKIT} AS cuda-toolkit

FROM builder AS cuda-builder
ARG JOBS
RUN --mount=type=cache,target=/root/.cache/ccache \
    --mount=type=bind,from=cuda-toolkit,source=/usr/local/cuda-13.0,target=/usr/local/cuda \
    PATH="/usr/local/cuda/bin:$PATH" cmake --preset release -Wno-dev -DBUILD_TESTING=OFF \
    && grep --quiet '^CMAKE_CUDA_COMPILER:' build/release/CMakeCache.txt \
    && cmake --build --preset release --parallel "${JOBS:-$(nproc)}" --target cipherd
# Parts of the C library that the daemon does not link, for the driver that the container runtime brings.
RUN deploy/image/collect-root --with libdl.so.2 --with libpthread.so.0 --with librt.so.1 /image build/release/server/cipherd

FROM daemon AS cuda
COPY --from=cuda-builder /image /
# What the container runtime is asked for: the devices that the container is given, and the driver for computing.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

# What a build without a target makes.
FROM cpu
