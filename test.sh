#!/usr/bin/env bash
# Sets up a Debian 12 machine, builds and runs all tests. Arguments go to ctest, e.g. ./test.sh -L unit
set -euo pipefail
cd "$(dirname "$0")"

scripts/setup.sh
cmake --preset cpu-release -DDEW_TESTS=ON
cmake --build --preset cpu-release
exec ctest --preset cpu-release "$@"
