#!/bin/sh
# The inspector of MCP as a client of Lockhouse: over standard streams and HTTP, in each era, with one call and with many at a
# time. The tools are those of tests/servers/conformance.py, which the client has directly, and our own.
# LOCKHOUSE names another binary than target/debug/lockhouse; LOAD_SECONDS how long each load lasts.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

LOAD_SECONDS=${LOAD_SECONDS:-4}
require_installed
require_lockhouse debug
PATH="$build/node_modules/.bin:$PATH"
. "$here/../shell/service.sh"

# The inspector hands no more of the environment to a server than HOME and PATH.
unset XDG_CONFIG_HOME XDG_STATE_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR
export HOME="$home"
# Each has a state directory of its own, so they cannot write the same audit log.
for config in "$home/.config/lockhouse" "$home/http"; do
    write_configuration "$config" fixture python3 "\"-B\", \"$root/tests/servers/conformance.py\""
    cat >>"$config/config.toml" <<EOF
parallel_calls = 100
queue = 1000

# A load is one client's.
[clients]
requests = "1000000/min"
EOF
done
serve "$home/http"

status=0
row() {
    printf '%-6s  %s\n' "$1" "$2"
    [ "$1" = pass ] || status=1
}

# What is said, and what must be in it.
says() {
    name=$1 expected=$2
    shift 2
    if mcp-inspector --cli "$@" >"$home/out" 2>"$home/err" && grep -q "$expected" "$home/out"; then
        row pass "$name"
    else
        row FAIL "$name"
        tail -n 5 "$home/out" "$home/err" >&2
    fi
}

load() {
    name=$1 calls=$2
    shift 2
    if mcp-inspector --cli "$@" --method tools/call --tool-name fixture__test_simple_text \
        --load --load-concurrency "$calls" --load-duration "$LOAD_SECONDS" --format json >"$home/out" 2>"$home/err" &&
        figures=$(python3 "$here/figures.py" "$home/out"); then
        row pass "$name, $calls at a time: $figures"
    else
        row FAIL "$name, $calls at a time"
        tail -n 5 "$home/out" "$home/err" >&2
    fi
}

for era in legacy auto modern; do
    for way in stdio HTTP; do
        if [ $way = stdio ]; then
            set -- "$LOCKHOUSE" serve --protocol-era $era
        else
            set -- "$url" --protocol-era $era
        fi
        says "$way $era: tools/list has ours and the server's" fixture__test_simple_text "$@" --method tools/list
        says "$way $era: tools/call" "a simple text response" "$@" --method tools/call --tool-name fixture__test_simple_text
        says "$way $era: run_code" '42' "$@" --method tools/call --tool-name run_code \
            --tool-arg language=python code='6 * 7'
        says "$way $era: resources/read" "static text resource" "$@" --method resources/read --uri test://static-text
        says "$way $era: prompts/get" "hello" "$@" --method prompts/get --prompt-name fixture__test_prompt_with_arguments \
            --prompt-args arg1=hello arg2=world
        load "$way $era" 10 "$@"
        load "$way $era" 100 "$@"
    done
done
exit $status
