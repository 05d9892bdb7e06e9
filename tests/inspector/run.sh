#!/bin/sh
# The inspector of MCP as a client of Lockhouse: over standard streams and HTTP, in each era, with one call and with many at a
# time. The tools are those of tests/servers/conformance.py, which the client has directly, and our own.
# LOCKHOUSE names another binary than target/debug/lockhouse; LOAD_SECONDS how long each load lasts.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build="$root/build/inspector"
LOCKHOUSE=${LOCKHOUSE:-$root/target/debug/lockhouse}
LOAD_SECONDS=${LOAD_SECONDS:-4}

if [ ! -f "$build/stamp" ]; then
    echo "tests/inspector: nothing is installed yet; run tests/inspector/prepare.sh" >&2
    exit 1
fi
if [ ! -x "$LOCKHOUSE" ]; then
    echo "tests/inspector: there is no $LOCKHOUSE; run cargo build --workspace" >&2
    exit 1
fi
PATH="$build/node_modules/.bin:$PATH"

home=$(mktemp -d)
served=
end() {
    [ -z "$served" ] || kill "$served" 2>/dev/null || true
    [ -z "$served" ] || wait "$served" 2>/dev/null || true
    rm -rf "$home"
}
trap end EXIT INT TERM

# The inspector hands no more of the environment to a server than HOME and PATH.
unset XDG_CONFIG_HOME XDG_STATE_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR
export HOME="$home"
config="$home/.config/lockhouse"
mkdir -p "$config"
cat >"$config/config.toml" <<EOF
[http]
auth = "none"

# A load is one client's.
[clients]
requests = "1000000/min"

[audit]
directory = "$home/audit"

[catalogue]
first_list_seconds = 10

[servers.fixture]
command = "python3"
args = ["-B", "$root/tests/servers/conformance.py"]
expose = "direct"
parallel_calls = 100
queue = 1000
EOF
printf 'version = 1\n[servers.fixture]\nallow = ["*"]\nresources = ["*"]\nprompts = ["*"]\n' >"$config/policy.toml"

"$LOCKHOUSE" serve --listen 127.0.0.1:0 2>"$home/log" &
served=$!
url=
tries=0
while [ -z "$url" ]; do
    url=$(sed -n 's/.*listening at \(http:[^ ]*\).*/\1/p' "$home/log" | head -n 1)
    tries=$((tries + 1))
    if ! kill -0 "$served" 2>/dev/null || [ $tries -gt 600 ]; then
        cat "$home/log" >&2
        exit 1
    fi
    [ -n "$url" ] || sleep 0.1
done

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
