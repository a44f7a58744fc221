#!/usr/bin/env bash
# Plants the errors of tests/planted_errors.txt one at a time in a copy of the sources and expects a test to fail each
# time. Exit status 1 when one survives, 2 when a row no longer fits the sources or does not compile.
#   scripts/planted_errors.sh [REGEX]     only the rows whose words, files or test match
# PLANTED_DIR=FOLDER keeps copy and build there for the next time; without, a temporary folder is made and removed.
# Needs what the build needs, and perl.
set -euo pipefail
cd "$(dirname "$0")/.."

pattern=${1:-.}
table=tests/planted_errors.txt
jobs=${JOBS:-2}
work=${PLANTED_DIR:-$(mktemp -d)}
mkdir -p "$work"
work=$(cd "$work" && pwd)
tree=$work/tree build=$work/build log=$work/log
export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$work

die() { printf 'planted_errors: %s\n' "$1" >&2; exit 2; }

touched=()
restore() {
  local file
  for file in ${touched[@]+"${touched[@]}"}; do cp "$work/original/$file" "$tree/$file"; done
  touched=()
}
keep_original() {  # FILE
  case " ${touched[*]-} " in *" $1 "*) return ;; esac
  mkdir -p "$work/original/$(dirname "$1")"
  cp "$tree/$1" "$work/original/$1"
  touched+=("$1")
}
finish() {
  restore
  if [ -z "${PLANTED_DIR:-}" ]; then rm -rf "$work"; fi
}

# ---- the table: row i has the edits first_edit[i] up to first_edit[i + 1]

faults=() tests=() filters=() first_edit=() edit_file=() edit_old=() edit_new=()

append_line() {  # NAME TEXT: to the last element of the array NAME
  local -n array=$1
  local last=$((${#array[@]} - 1))
  array[last]+=${array[last]:+$'\n'}$2
}

read_table() {
  local line text rest number=0
  while IFS= read -r line; do
    number=$((number + 1))
    text=${line:2}
    case $line in
      '' | '#'*) ;;
      '= '*) faults+=("$text"); first_edit+=("${#edit_file[@]}") ;;
      '@ '*) edit_file+=("$text"); edit_old+=(''); edit_new+=('') ;;
      '- '*) append_line edit_old "$text" ;;
      '+ '*) append_line edit_new "$text" ;;
      '> '*) tests+=("${text%% *}"); rest=${text#* }; filters+=("$rest") ;;
      *) die "$table:$number: a line starts with one of = @ - + > #" ;;
    esac
    [ "${#tests[@]}" -le "${#faults[@]}" ] || die "$table:$number: a second test in one row"
  done < "$table"
  [ "${#tests[@]}" -eq "${#faults[@]}" ] || die "$table: a row without a test"
  first_edit+=("${#edit_file[@]}")
}

chosen() {
  local e words="${faults[$1]} ${tests[$1]}"
  for ((e = first_edit[$1]; e < first_edit[$1 + 1]; e++)); do words+=" ${edit_file[e]}"; done
  [[ $words =~ $pattern ]]
}

# ---- one edit: plain strings, and the old one stands in the file exactly once

edit() {  # EDIT FILE RESULT
  OLD=${edit_old[$1]} NEW=${edit_new[$1]} perl -0777 -ne '
    my $at = $ENV{OLD} eq "" ? -1 : index($_, $ENV{OLD});
    die "the old text is not there\n" if $at < 0;
    die "the old text is there more than once\n" if index($_, $ENV{OLD}, $at + 1) >= 0;
    substr($_, $at, length $ENV{OLD}) = $ENV{NEW};
    print' "$2" > "$3" || return 1
  cmp -s "$2" "$3" && { echo 'the new text is the old one' >&2; return 1; }
  return 0
}

check_row() {  # ROW: before anything is built
  local e wrong=0
  for ((e = first_edit[$1]; e < first_edit[$1 + 1]; e++)); do
    [ -f "$tree/${edit_file[e]}" ] && edit "$e" "$tree/${edit_file[e]}" "$work/edited" && continue
    printf 'row "%s" does not fit %s:\n%s\n' "${faults[$1]}" "${edit_file[e]}" "${edit_old[e]}" >&2
    wrong=1
  done
  return "$wrong"
}

plant_row() {  # ROW
  local e file
  for ((e = first_edit[$1]; e < first_edit[$1 + 1]; e++)); do
    file=${edit_file[e]}
    keep_original "$file"
    edit "$e" "$tree/$file" "$work/edited" || die "row '${faults[$1]}': its edits of $file exclude one another"
    cp "$work/edited" "$tree/$file"
  done
}

# ---- building and testing the copy

target_of() {  # TEST
  local path=${1%.np[0-9]*}
  printf '%s_test\n' "${path//\//_}"
}
build_target() { nice ninja -C "$build" -j "$jobs" "$@" > "$log" 2>&1; }
run_test() {  # TEST FILTER
  GTEST_FILTER=$2 nice ctest --test-dir "$build" -R "^${1//./\\.}\$" --no-tests=error --output-on-failure > "$log" 2>&1
}

copy_sources() {
  local file
  while IFS= read -r -d '' file; do
    if [ ! -f "$file" ] || cmp -s "$file" "$tree/$file"; then continue; fi
    mkdir -p "$tree/$(dirname "$file")"
    cp "$file" "$tree/$file"
  done < <(git ls-files -z --cached --others --exclude-standard)
}

build_unchanged() {
  local i name targets=()
  local -A cases=()
  for i in "${rows[@]}"; do
    targets+=("$(target_of "${tests[i]}")")
    cases[${tests[i]}]+="${cases[${tests[i]}]:+:}${filters[i]}"
  done
  nice cmake -G Ninja -S "$tree" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
    -DDEW_BENCHMARKS=OFF > "$log" 2>&1 || { cat "$log" >&2; die 'the copy cannot be configured'; }
  build_target "${targets[@]}" || { tail -n 30 "$log" >&2; die 'the copy does not build'; }
  for name in "${!cases[@]}"; do
    run_test "$name" "${cases[$name]}" || { tail -n 40 "$log" >&2; die "$name fails without a planted error"; }
  done
}

try_row() {  # ROW: sets verdict
  plant_row "$1"
  if ! build_target "$(target_of "${tests[$1]}")"; then
    verdict='BROKEN'
    grep -m 3 -E 'error|FAILED' "$log" >&2 || true
  elif run_test "${tests[$1]}" "${filters[$1]}"; then
    verdict='SURVIVED'
  elif grep -qE '^\[(FAIL|  FAILED  )\]' "$log"; then
    verdict='caught'
  elif grep -qF '***Timeout' "$log"; then
    verdict='hung'
  else
    verdict='crashed'
  fi
  restore
}

read_table
rows=()
for ((i = 0; i < ${#faults[@]}; i++)); do if chosen "$i"; then rows+=("$i"); fi; done
[ "${#rows[@]}" -gt 0 ] || die "no row matches $pattern"
trap finish EXIT
trap 'exit 130' INT TERM
copy_sources
fits=yes
for i in "${rows[@]}"; do check_row "$i" || fits=no; done
[ "$fits" = yes ] || die 'rows do not fit the sources'
printf 'building the unchanged copy and running its tests\n'
build_unchanged

survived=0 broken=0
for i in "${rows[@]}"; do
  begin=$SECONDS
  try_row "$i"
  case $verdict in SURVIVED) survived=$((survived + 1)) ;; BROKEN) broken=$((broken + 1)) ;; esac
  printf '%-14s %4ds  %-76s %s\n' "$verdict" $((SECONDS - begin)) "${faults[i]}" "${tests[i]}"
done
printf '%d planted: %d caught, %d survived, %d do not compile\n' "${#rows[@]}" \
  $((${#rows[@]} - survived - broken)) "$survived" "$broken"
[ "$broken" -eq 0 ] || exit 2
[ "$survived" -eq 0 ]
