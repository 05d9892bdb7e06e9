#!/bin/sh
# Runs the server scenarios of the official conformance suite, for each revision of the protocol, against a real
# `lockhouse serve` over HTTP. The fixtures are those of tests/servers/conformance.py, which AI clients have directly
# and without a prefix. LOCKHOUSE names another binary than target/debug/lockhouse. An argument, such as
# tools-call-error, narrows it to one scenario and shows all that was said.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_installed
require_lockhouse debug
PATH="$build/node_modules/.bin:$PATH"
. "$here/../shell/service.sh"

status=0
for revision in 2025-11-25 2026-07-28; do
    # The upstream server uses the same era, since some fixtures ask during a call in the way of their era.
    era=--legacy
    [ "$revision" = 2025-11-25 ] || era=--modern
    write_configuration "$home/$revision" fixture python3 "\"-B\", \"$root/tests/servers/conformance.py\", \"$era\""
    echo 'prefix = ""' >>"$home/$revision/config.toml"
    serve "$home/$revision"
    results="$build/results/server-$revision"
    rm -rf "$results"
    mkdir -p "$results"
    if [ $# -gt 0 ]; then
        conformance server --url "$url" --scenario "$1" --spec-version "$revision" --verbose -o "$results" || status=1
    else
        conformance server --url "$url" --requirements "$revision" -o "$results" 2>"$results/log.txt" || status=1
        echo "Everything that was said: $results"
    fi
    cp "$home/$revision/log" "$results/lockhouse.txt"
    end_processes
done
exit $status
