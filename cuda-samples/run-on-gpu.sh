#!/usr/bin/env bash
# Runs the samples that `cargo xtask gpu-bundle` built, on the machine's GPU: each without Echo, with it, and merged by hand, one after the
# other in each round; compares what they print and shows the medians of their loop times.
#
# usage: run-on-gpu.sh [ROUNDS]     (5 by default)
# exit status: 0 all outputs equal, 1 some differ or a program failed
set -u
cd "$(dirname "$0")" || exit 1
rounds=${1:-5}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "-" }'; }

printf '%-14s %10s %10s %10s %7s  %s\n' sample before/ms after/ms hand/ms ratio outputs
while read -r name variants arguments; do
    rm -f "$scratch"/*
    verdict=equal
    for _ in $(seq "$rounds"); do
        for variant in $(tr ',' ' ' <<<"$variants"); do
            # shellcheck disable=SC2086 # the arguments are words
            if ! "./$name-$variant" $arguments >"$scratch/out" 2>"$scratch/err"; then
                verdict="$variant failed: $(tail -n 1 "$scratch/err")"
                continue
            fi
            sed -n 's/^loop time: \(.*\) ms$/\1/p' "$scratch/err" >>"$scratch/$variant.ms"
            if [ ! -e "$scratch/expected" ]; then
                mv "$scratch/out" "$scratch/expected"
            elif ! cmp -s "$scratch/out" "$scratch/expected"; then
                verdict="$variant differs"
            fi
        done
    done
    touch "$scratch"/{plain,echo,merged}.ms
    before=$(median "$scratch/plain.ms") after=$(median "$scratch/echo.ms") hand=$(median "$scratch/merged.ms")
    ratio=$(awk -v a="$before" -v b="$after" 'BEGIN { if (a + 0 && b + 0) printf "%.2f", a / b; else print "-" }')
    printf '%-14s %10s %10s %10s %7s  %s\n' "$name" "$before" "$after" "$hand" "$ratio" "$verdict"
    [ "$verdict" = equal ] || status=1
done <samples.list
exit $status
