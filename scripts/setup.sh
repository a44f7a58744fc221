#!/usr/bin/env bash
# Installs the Debian packages that the build, the runs and the tests need; only what is missing, and says so.
#   scripts/setup.sh [--lint]      --lint adds clang-format and clang-tidy
# Root, or sudo, is needed only when something is missing.
set -euo pipefail

packages=(
  build-essential cmake ninja-build ccache pkg-config
  libopenmpi-dev openmpi-bin          # ranks
  libhdf5-openmpi-dev hdf5-tools      # checkpoints, and h5diff to compare them
  libdnnl-dev libopenblas-openmp-dev  # what the benchmarks measure our matrix products against
  libyaml-cpp-dev nlohmann-json3-dev libboost-program-options-dev
  libgtest-dev
)
case "${1:-}" in
  "") ;;
  --lint) packages+=(clang-format clang-tidy libomp-dev) ;;
  *) echo "usage: scripts/setup.sh [--lint]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this is not a Debian system; the libraries of these packages must be here already: ${packages[*]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#packages[@]} Debian packages are here"
  exit 0
fi

echo "setup: installing from Debian (a few minutes): ${missing[*]}"
as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "setup: run this once as root, or install sudo" >&2; exit 1; }
  as_root=(sudo)
fi
apt() { ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" </dev/null; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -30 "$log" >&2
  echo "setup: apt-get failed (its last lines are above)" >&2
  exit 1
fi
echo "setup: installed"
