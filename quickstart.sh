#!/usr/bin/env bash
# From a fresh Debian 12 to a trained model: installs what is missing, builds, trains configs/quickstart.yaml on 8 CPU
# ranks, then continues from its last but one checkpoint on other layouts and shows that they agree.
set -euo pipefail
cd "$(dirname "$0")"

readonly config=configs/quickstart.yaml
readonly ranks=8
# Layouts sum in other orders, so results differ by rounding in f32: about 1e-6 in a loss after a few steps. AdamW turns a
# tiny difference of a tiny gradient into a difference of the update, hence the wider bound for weights.
readonly loss_bound=1e-4
readonly weight_bound=1e-3

if [ -t 1 ]; then bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'; else bold='' green='' red='' plain=''; fi
say() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
die() { printf '%squickstart: %s%s\n' "$red" "$*" "$plain" >&2; exit 1; }

say "1 of 4: Debian packages"
scripts/setup.sh

say "2 of 4: build (build/cpu-release)"
cmake --preset cpu-release >build.log 2>&1 || { tail -20 build.log >&2; die "cmake failed; see build.log"; }
cmake --build --preset cpu-release --target dew_train_program
readonly program=$PWD/build/cpu-release/apps/dew_train

launch=(mpirun --oversubscribe)
if [ "$(id -u)" = 0 ]; then launch+=(--allow-run-as-root); fi

# train RANKS DIR [--set ...]: one run, shown as it is started.
train() {
  local np=$1 dir=$2; shift 2
  printf '%s$ mpirun --oversubscribe -np %s dew_train %s --set run.dir=%s%s%s\n' "$bold" "$np" "$config" "$dir" "${*:+ $*}" "$plain"
  "${launch[@]}" -np "$np" "$program" "$config" --set "run.dir=$dir" "$@" </dev/null
}

mkdir -p runs
base=$(mktemp -d "runs/quickstart-$(date +%Y%m%d-%H%M%S)-XXX")
readonly base whole=$base/replica2_fsdp4

say "3 of 4: train on $ranks ranks, replica 2 x fsdp 4"
train $ranks "$whole"

checkpoints=("$whole"/checkpoints/step_*.h5)
[ ${#checkpoints[@]} -ge 2 ] || die "expected two checkpoints in $whole/checkpoints"
last=${checkpoints[-1]##*/}
from=${checkpoints[-2]##*/}
step_of() { local digits=${1#step_}; echo $((10#${digits%.h5})); }

# resume NAME RANKS [--set ...]: continues a copy of the run, without its last checkpoint, on another layout.
resume() {
  local dir=$base/$1 np=$2; shift 2
  mkdir -p "$dir/checkpoints"
  cp "$whole"/*.yaml "$whole"/metrics.jsonl "$dir/"
  cp "$whole/checkpoints/$from" "$dir/checkpoints/"
  train "$np" "$dir" --resume=require "$@"
}
say "4 of 4: continue from step $(step_of "$from") on other layouts"
resume same 8
resume fsdp8 8 --set mesh.replica=1 --set mesh.fsdp=8
resume fsdp3 3 --set mesh.replica=1 --set mesh.fsdp=3

scripts/compare_runs.sh --after "$(step_of "$from")" --checkpoint "$last" --loss "$loss_bound" --weights "$weight_bound" \
  "$whole" "$base/same" "$base/fsdp8" "$base/fsdp3" || die "the layouts do not agree"

printf '\n%sThe layouts agree.%s The run, its metrics and its checkpoints are in %s\n' "$green" "$plain" "$base"
