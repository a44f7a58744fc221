#!/usr/bin/env bash
# Compares runs with the first one: the losses logged after a step, side by side, and the weights of a checkpoint.
#   scripts/compare_runs.sh --after STEP --checkpoint FILE --loss BOUND --weights BOUND RUN_DIR RUN_DIR...
# Bounds are largest absolute differences. Exit status 1 when a bound is passed. Needs h5diff (hdf5-tools) and awk.
set -euo pipefail

usage() { sed -n '2,4p' "$0" | sed 's/^# //' >&2; exit 2; }
after='' checkpoint='' loss_bound='' weight_bound=''
while [ $# -gt 0 ]; do
  case $1 in
    --after) after=$2; shift 2 ;;
    --checkpoint) checkpoint=$2; shift 2 ;;
    --loss) loss_bound=$2; shift 2 ;;
    --weights) weight_bound=$2; shift 2 ;;
    -*) usage ;;
    *) break ;;
  esac
done
if [ -z "$after" ] || [ -z "$checkpoint" ] || [ -z "$loss_bound" ] || [ -z "$weight_bound" ] || [ $# -lt 2 ]; then usage; fi

# The table of losses; the last line of awk's output is the largest difference, or a word when there is nothing to compare.
losses() {
  awk -v after="$after" -v bound="$loss_bound" '
    function field(name,    found) {
      if (!match($0, "\"" name "\": *[-+0-9.eEnaif]+")) return ""
      found = substr($0, RSTART, RLENGTH); sub(/^[^:]*: */, "", found); return found
    }
    FNR == 1 { runs++; name[runs] = FILENAME; sub(/\/metrics\.jsonl$/, "", name[runs]); sub(/.*\//, "", name[runs]) }
    {
      step = field("step"); loss = field("loss")
      if (step == "" || loss == "" || step + 0 <= after) next
      if (!(step in seen)) { seen[step] = 1; order[++steps] = step }
      value[step, runs] = loss
    }
    END {
      printf "%8s", "step"; for (r = 1; r <= runs; r++) printf "  %14s", name[r]; print "   loss"
      worst = 0; wrong = steps == 0
      for (i = 1; i <= steps; i++) {
        step = order[i]; printf "%8d", step
        for (r = 1; r <= runs; r++) {
          if (!((step, r) in value) || value[step, r] !~ /^[-+0-9.eE]+$/) { printf "  %14s", "none"; wrong = 1; continue }
          printf "  %14.8f", value[step, r]
          d = value[step, r] - value[step, 1]; if (d < 0) d = -d; if (d > worst) worst = d
        }
        print ""
      }
      printf "losses: %d steps, largest difference %.2e (allowed %s)\n", steps, worst, bound
      exit wrong || worst > bound + 0
    }' "${@/%//metrics.jsonl}"
}

# The largest absolute difference of the weights of two checkpoints, over every element of /params.
weights() {
  local count status=0 out
  count=$(h5ls -r "$1/params" | grep -c Dataset || true)
  out=$(mktemp)
  h5diff -r "$1" "$2" /params /params >"$out" 2>&1 || status=$?
  if [ "$status" -gt 1 ] || [ "$count" -eq 0 ] || grep -q "not comparable" "$out"; then
    cat "$out" >&2; rm -f "$out"; echo "weights: h5diff could not compare $2" >&2; return 1
  fi
  awk -v count="$count" -v bound="$weight_bound" -v name="$3" '
    /^dataset:/ { here = 1 } /^attribute:/ { here = 0 }    # checksums are attributes and differ wherever a weight does
    here && /^\[/ {
      d = $NF; differ++
      if (d !~ /^[-+0-9.eE]+$/) { bad = 1; next }
      if (d < 0) d = -d; if (d + 0 > worst) worst = d + 0
    }
    END {
      printf "weights: %-14s %d tensors, %s, largest difference %.2e (allowed %s)\n", name, count,
             differ ? differ " elements differ" : "every bit the same", worst, bound
      exit bad || worst > bound + 0
    }' "$out" || { rm -f "$out"; return 1; }
  rm -f "$out"
}

failed=0
losses "$@" || failed=1
first=$1; shift
for run in "$@"; do weights "$first/checkpoints/$checkpoint" "$run/checkpoints/$checkpoint" "${run##*/}" || failed=1; done
exit $failed
