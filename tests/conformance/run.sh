#!/bin/sh
# Runs the client scenarios of the official conformance suite for each revision of the protocol, and prints its table.
# LOCKHOUSE names another binary than target/debug/lockhouse. An argument, such as auth/basic-cimd, narrows it to one
# scenario and prints all messages.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_installed
require_lockhouse debug
PATH="$build/node_modules/.bin:$PATH"
client="python3 -B $here/client.py"
# Milliseconds for all scenarios together: the suite starts them at once, and most wait for a slot.
timeout_ms=600000

status=0
for revision in 2025-11-25 2026-07-28; do
    results="$build/results/$revision"
    rm -rf "$results"
    mkdir -p "$results"
    if [ $# -gt 0 ]; then
        conformance client --command "$client" --scenario "$1" --spec-version "$revision" -o "$results" || status=1
        continue
    fi
    log="$results/log.txt"
    conformance client --command "$client" --requirements "$revision" --timeout "$timeout_ms" --verbose \
        -o "$results" 2>"$log" || status=1
    echo "Everything that was said: $results"
done
exit $status
