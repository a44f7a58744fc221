#!/usr/bin/env bash
# Trains configs/shakespeare.yaml on TEXT with one rank and with four (fsdp), and compares: the first 20 losses, and the final
# loss on the whole validation part, which nanoGPT's CPU example of these sizes puts at 1.88.
#   benchmarks/shakespeare.sh TEXT [BUILD]
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
text=$1 program=${2:-build/cpu-release}/apps/dew_train
base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
launch=(mpirun --oversubscribe)
if [ "$(id -u)" = 0 ]; then launch+=(--allow-run-as-root); fi
common=(configs/shakespeare.yaml --set "data.text=$text" --set log.every=1 --set layout.min_shard=512)

"$program" "${common[@]}" --set "run.dir=$base/one" >/dev/null
"${launch[@]}" -np 4 "$program" "${common[@]}" --set "run.dir=$base/four" --set mesh.fsdp=4 >/dev/null

value() { sed -n "s/.*\"step\": $2, \"$3\": \([-0-9.e+]*\).*/\1/p" "$1/metrics.jsonl"; }
for step in $(seq 1 20); do
  echo "$(value "$base/one" "$step" loss) $(value "$base/four" "$step" loss)"
done | awk '{d = $1 - $2; if (d < 0) d = -d; if (d > most) most = d; n++}
  END {printf "first %d losses: largest difference %.2e (bound 1e-5)\n", n, most; exit !(n == 20 && most <= 1e-5)}'
echo "$(value "$base/one" 2000 val_loss) $(value "$base/four" 2000 val_loss)" |
  awk '{d = $1 - $2; if (d < 0) d = -d
    printf "validation loss: %.4f on one rank, %.4f on four (bound 1.88), difference %.4f (bound 0.02)\n", $1, $2, d
    exit !(NF == 2 && $1 <= 1.88 && $2 <= 1.88 && d <= 0.02)}'
