#!/usr/bin/env bash
# Fails where clang-format (Debian 12's, 14) would change a source file; --fix changes it.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(--dry-run -Werror)
case "${1:-}" in
  "") ;;
  --fix) mode=(-i) ;;
  *) echo "usage: scripts/check_format.sh [--fix]" >&2; exit 2 ;;
esac
mapfile -d '' files < <(find lib apps tests benchmarks -type f \( -name '*.cpp' -o -name '*.h' \) -print0 | sort -z)
clang-format "${mode[@]}" "${files[@]}"
echo "format: ${#files[@]} files"
