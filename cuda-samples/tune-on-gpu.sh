#!/usr/bin/env bash
# Lets Echo-DR find, test and measure the pairs of the samples that `cargo xtask gpu-bundle` built with nvcc (static CUDA runtime, nothing
# rebuilt), runs each with its plan, and compares what it prints with what it prints without. Shows the loop times that the samples measure
# themselves, medians of the rounds, and what the last run merged and skipped.
#
# usage: tune-on-gpu.sh [ROUNDS]     (5 by default)
# exit status: 0 all outputs equal, 1 some differ or a program failed
set -u
cd "$(dirname "$0")" || exit 1
rounds=${1:-5}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "-" }'; }

# measured LABEL COMMAND…: its output in $scratch/LABEL.out, its loop time added to $scratch/LABEL.ms
measured() {
    local label=$1
    shift
    "$@" >"$scratch/$label.out" 2>"$scratch/$label.err" </dev/null || { verdict="$label failed: $(tail -n 1 "$scratch/$label.err")"; return; }
    sed -n 's/^loop time: \(.*\) ms$/\1/p' "$scratch/$label.err" >>"$scratch/$label.ms"
}

printf '%-14s %6s %10s %10s %7s %8s  %s\n' sample merged before/ms with/ms ratio skipped outputs
while read -r name _ arguments; do
    rm -f "$scratch"/*
    verdict=equal pairs=- skipped=-
    # shellcheck disable=SC2086 # the arguments are words
    ./echo-dr tune --compare-stdout --json --output "$name.plan.json" -- "./$name-nvcc" $arguments >"$name.tune.json" 2>"$scratch/tune.err"
    case $? in
    0) ;;
    1) verdict="nothing to merge" ;;
    *) verdict="tune failed: $(tail -n 1 "$scratch/tune.err")" status=1 ;;
    esac
    if [ "$verdict" = equal ]; then
        for _ in $(seq "$rounds"); do
            # shellcheck disable=SC2086
            measured plain "./$name-nvcc" $arguments
            # shellcheck disable=SC2086
            measured run ./echo-dr run --counters "$scratch/counters.json" "$name.plan.json" -- "./$name-nvcc" $arguments
            cmp -s "$scratch/plain.out" "$scratch/run.out" || verdict="outputs differ"
        done
        count() { grep -o "\"$1\": *[0-9]*" "$scratch/counters.json" | awk -F: '{ sum += $2 } END { print sum + 0 }'; }
        pairs=$(count met)
        skipped=$(count copies_skipped)
    fi
    touch "$scratch/plain.ms" "$scratch/run.ms"
    row=("$(median "$scratch/plain.ms")" "$(median "$scratch/run.ms")")
    ratio=$(awk -v a="${row[0]}" -v b="${row[1]}" 'BEGIN { if (a + 0 && b + 0) printf "%.2f", a / b; else print "-" }')
    printf '%-14s %6s %10s %10s %7s %8s  %s\n' "$name" "$pairs" "${row[@]}" "$ratio" "$skipped" "$verdict"
    case $verdict in *differ* | *failed*) status=1 ;; esac
done <samples.list
exit $status
