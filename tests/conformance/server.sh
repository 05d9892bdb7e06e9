#!/bin/sh
# Runs the server scenarios of the official conformance suite, for each revision of the protocol, against a real
# `lockhouse serve` over HTTP. The fixtures are those of tests/servers/conformance.py, which AI clients have directly
# and without a prefix. LOCKHOUSE names another binary than target/debug/lockhouse. An argument, such as
# tools-call-error, narrows it to one scenario and shows all that was said.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build="$root/build/conformance"
LOCKHOUSE=${LOCKHOUSE:-$root/target/debug/lockhouse}

if [ ! -f "$build/stamp" ]; then
    echo "tests/conformance: nothing is installed yet; run tests/conformance/prepare.sh" >&2
    exit 1
fi
if [ ! -x "$LOCKHOUSE" ]; then
    echo "tests/conformance: there is no $LOCKHOUSE; run cargo build --workspace" >&2
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

# Starts Lockhouse with the fixture server in one of its eras, and sets `url`.
start() {
    mkdir -p "$home/$1"
    cat >"$home/$1/config.toml" <<EOF
[http]
auth = "none"

[audit]
directory = "$home/$1/audit"

[catalogue]
first_list_seconds = 10

[servers.fixture]
command = "python3"
args = ["-B", "$root/tests/servers/conformance.py"$2]
expose = "direct"
prefix = ""
EOF
    printf 'version = 1\n[servers.fixture]\nallow = ["*"]\nresources = ["*"]\nprompts = ["*"]\n' \
        >"$home/$1/policy.toml"
    HOME="$home/$1" XDG_CONFIG_HOME="$home/$1" XDG_STATE_HOME="$home/$1" XDG_CACHE_HOME="$home/$1" XDG_RUNTIME_DIR="$home/$1" \
        "$LOCKHOUSE" serve --listen 127.0.0.1:0 --config "$home/$1/config.toml" --policy "$home/$1/policy.toml" \
        2>"$home/$1/log" &
    served=$!
    url=
    tries=0
    while [ -z "$url" ]; do
        url=$(sed -n 's/.*listening at \(http:[^ ]*\).*/\1/p' "$home/$1/log" | head -n 1)
        tries=$((tries + 1))
        if ! kill -0 "$served" 2>/dev/null || [ $tries -gt 600 ]; then
            cat "$home/$1/log" >&2
            exit 1
        fi
        [ -n "$url" ] || sleep 0.1
    done
}

status=0
for revision in 2025-11-25 2026-07-28; do
    # The upstream server uses the same era, since some fixtures ask during a call in the way of their era.
    era=', "--legacy"'
    [ "$revision" = 2025-11-25 ] || era=', "--modern"'
    start "$revision" "$era"
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
    kill "$served"
    wait "$served" 2>/dev/null || true
    served=
done
exit $status
