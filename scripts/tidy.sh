#!/usr/bin/env bash
# Runs clang-tidy over the sources that a configured build folder compiles; any finding fails.
#   scripts/tidy.sh [BUILD_FOLDER [PATH_PART]]      default build/cpu-release, all sources
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/cpu-release}
part=${2:-}
[ -f "$build/compile_commands.json" ] || { echo "tidy: configure first: cmake --preset cpu-release" >&2; exit 2; }
mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" |
  grep -F "$PWD/" | grep -F -- "$part" | sort -u)
[ ${#files[@]} -gt 0 ] || { echo "tidy: no sources" >&2; exit 2; }
# shellcheck disable=SC2016
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" sh -c '
  out=$(clang-tidy -p "$0" --quiet "$1" 2>&1) && exit 0
  printf "%s\n" "$out" | grep -v "warnings generated\|warnings treated as errors" >&2
  exit 1' "$build"
echo "tidy: ${#files[@]} files"
