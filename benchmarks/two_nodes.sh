#!/usr/bin/env bash
# Three layouts of one decoder on two nodes of two ranks, taking turns: the hybrid one (sharded within a node,
# whole copies across), everything sharded over all ranks, and four whole copies. Prints each one's step time
# and the bytes that all nodes together put on the wire in a step, as counted by the program and as counted by
# the interfaces.
#
#   LAUNCH="mpirun -np 4 --hostfile HOSTS" benchmarks/two_nodes.sh [BUILD [ROUNDS [STEPS]]]
#
# LAUNCH starts a command as 4 ranks, 2 on each of 2 nodes; BUILD is a build folder with DEW_BENCHMARKS
# (build/cpu-release), seen from both nodes.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/cpu-release} rounds=${2:-3} steps=${3:-10}
[ -n "${LAUNCH:-}" ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ -x "$build/benchmarks/bench_step" ] || { echo "two_nodes: no $build/benchmarks/bench_step" >&2; exit 2; }
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

layouts=("replica 2 x fsdp 2" "fsdp 4" "replica 4")
overrides=("--set mesh.fsdp=auto" "--set mesh.replica=1 --set mesh.fsdp=4" "--set mesh.replica=4 --set mesh.fsdp=1")
for ((round = 0; round < rounds; round++)); do
  for i in "${!layouts[@]}"; do
    # shellcheck disable=SC2086
    $LAUNCH "$(realpath "$build")/benchmarks/bench_step" "$PWD/benchmarks/shapes/two_nodes.yaml" --steps "$steps" \
      ${overrides[i]} </dev/null >"$results/out"
    grep -q '^wire_mb_per_step' "$results/out" || { echo "two_nodes: LAUNCH gave one node" >&2; exit 1; }
    cp "$results/out" "$results/last.$i"
    cat "$results/out" >>"$results/$i"
  done
done

printf '%-20s %10s %10s %12s %12s %8s\n' layout best_ms median_ms counted_mb wire_mb ratio
for i in "${!layouts[@]}"; do
  awk -v name="${layouts[i]}" '
    function median(values, n,   a, b, t) {
      for (a = 1; a <= n; a++) for (b = a + 1; b <= n; b++) if (values[b] < values[a]) {
        t = values[a]; values[a] = values[b]; values[b] = t }
      return values[int((n + 1) / 2)] }
    /^step_ms/ { n++; best = n == 1 || $3 < best ? $3 : best; medians[n] = $5 }
    /^wire_mb_per_step/ { counted = $3; wire[n] = $5 }
    END { w = median(wire, n)
      printf "%-20s %10.1f %10.1f %12.2f %12.2f %8.3f\n", name, best, median(medians, n), counted, w, w / counted }' \
    "$results/$i"
done
for i in "${!layouts[@]}"; do
  echo "${layouts[i]}, a step:"
  grep -E '^ .* ranks .* sent' "$results/last.$i"
done
