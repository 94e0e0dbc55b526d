#!/usr/bin/env bash
# Runs the samples that `cargo xtask gpu-bundle` built, on the machine's GPU, one after the other in each round: without Echo (before), with it
# (managed), with its adaptive target as that decides (adaptive), the same made to take mapped memory (mapped), and merged by hand (hand).
# Compares what they print and shows the medians of their loop times; the ratio is before to adaptive.
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

# run PROGRAM LABEL [VARIABLE=VALUE] -- ARGUMENTS
run() {
    local program=$1 label=$2 setting=$3
    shift 3
    if ! env "$setting" "./$program" "$@" >"$scratch/out" 2>"$scratch/err"; then
        verdict="$label failed: $(tail -n 1 "$scratch/err")"
        return
    fi
    sed -n 's/^loop time: \(.*\) ms$/\1/p' "$scratch/err" >>"$scratch/$label.ms"
    if [ ! -e "$scratch/expected" ]; then
        mv "$scratch/out" "$scratch/expected"
    elif ! cmp -s "$scratch/out" "$scratch/expected"; then
        verdict="$label differs"
    fi
}

printf '%-14s %10s %10s %12s %10s %10s %7s  %s\n' sample before/ms managed/ms adaptive/ms mapped/ms hand/ms ratio outputs
while read -r name builds arguments; do
    rm -f "$scratch"/*
    verdict=equal
    for _ in $(seq "$rounds"); do
        for build in $(tr ',' ' ' <<<"$builds"); do
            # shellcheck disable=SC2086 # the arguments are words
            run "$name-$build" "$build" ECHO_RT_BACKEND= $arguments
            # shellcheck disable=SC2086
            [ "$build" != adaptive ] || run "$name-$build" mapped ECHO_RT_BACKEND=mapped $arguments
        done
    done
    row=()
    for label in plain echo adaptive mapped merged; do
        touch "$scratch/$label.ms"
        row+=("$(median "$scratch/$label.ms")")
    done
    ratio=$(awk -v a="${row[0]}" -v b="${row[2]}" 'BEGIN { if (a + 0 && b + 0) printf "%.2f", a / b; else print "-" }')
    printf '%-14s %10s %10s %12s %10s %10s %7s  %s\n' "$name" "${row[@]}" "$ratio" "$verdict"
    [ "$verdict" = equal ] || status=1
done <samples.list
exit $status
