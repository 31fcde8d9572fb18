#!/usr/bin/env bash
# Build the image `tacit` with docker, podman or buildah, whichever is there. With FROM_DEBIAN=1 no base image is pulled:
# mmdebstrap makes one from Debian packages (as root, with buildah).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ -d dist/wheels ]] || { echo "first: make wheels" >&2; exit 1; }
tool=${TOOL:-$(command -v docker || command -v podman || command -v buildah)}
arguments=(-f deploy/Dockerfile -t "${IMAGE:-tacit}")
if [[ "${FROM_DEBIAN:-}" == 1 ]]; then
  tool=$(command -v buildah)
  export STORAGE_DRIVER=${STORAGE_DRIVER:-vfs} BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}
  mkdir -p build
  [[ -f build/debian.tar ]] || mmdebstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm build/debian.tar
  base=$("$tool" from scratch)
  "$tool" add --quiet "$base" build/debian.tar / >/dev/null
  "$tool" commit --quiet "$base" tacit-debian >/dev/null
  "$tool" rm "$base" >/dev/null
  arguments+=(--build-arg BASE=localhost/tacit-debian --pull-never)
fi
case "$(basename "$tool")" in
  # The health check is part of Docker's image format and not of OCI's.
  buildah) "$tool" bud --format docker "${arguments[@]}" . ;;
  podman) "$tool" build --format docker "${arguments[@]}" . ;;
  *) "$tool" build "${arguments[@]}" . ;;
esac
