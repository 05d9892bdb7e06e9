#!/bin/sh
# Fuzzes each target for FUZZ_SECONDS (180), or those that the arguments name. Requires a nightly compiler and `cargo install cargo-fuzz`.
# build/fuzz/TARGET is the corpus of a target: its seeds, and the inputs that the fuzzer has added, fewer of them after each run. An input that violates an invariant is
# written into fuzz/artifacts of the crate: make it a seed in fuzz/src/seeds.rs, which the tests pass to the target.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

cargo=${CARGO:-cargo}
found=
status=0
for folder in "$root"/*/fuzz/fuzz_targets "$root"/supervisor/*/fuzz/fuzz_targets; do
    targets=
    for file in "$folder"/*.rs; do
        target=$(basename "$file" .rs)
        case " ${*:-$target} " in *" $target "*) targets="$targets $target" ;; esac
    done
    [ -n "$targets" ] || continue
    found=yes
    cd "$folder/.."
    "$cargo" +nightly run --quiet --example seeds -- "$build"
    cd ..
    for target in $targets; do
        "$cargo" +nightly fuzz run "$target" "$build/$target" -- -max_total_time="${FUZZ_SECONDS:-180}" -max_len=4096 -malloc_limit_mb=65 || status=1
        "$cargo" +nightly fuzz cmin "$target" "$build/$target" || status=1
    done
done
[ -n "$found" ] || stop "no target is called $*"
exit $status
