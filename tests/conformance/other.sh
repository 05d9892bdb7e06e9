#!/bin/sh
# Runs the server scenarios of the official conformance suite against `@modelcontextprotocol/server-everything`, a server of another
# author, alone and through Lockhouse, which exposes it directly. Fails if a check passes alone and fails through Lockhouse. The
# server has few of the suite's fixtures, so many checks fail in both. LOCKHOUSE names another binary than target/debug/lockhouse.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_installed
require_lockhouse debug
PATH="$build/node_modules/.bin:$PATH"
package=@modelcontextprotocol/server-everything@2026.8.31
everything="$build/everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
if [ ! -f "$everything" ]; then
    npm install --prefix "$build/everything" --no-audit --no-fund --loglevel=error "$package"
fi

. "$here/../shell/service.sh"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
PORT=$port node "$everything" streamableHttp >"$home/everything.log" 2>&1 &
pids=$!
write_configuration "$home" everything node "\"$everything\", \"stdio\""
echo 'prefix = ""' >>"$home/config.toml"
serve "$home"
tries=0
until grep -q listening "$home/everything.log"; do
    tries=$((tries + 1))
    if [ $tries -gt 300 ]; then
        cat "$home/everything.log" >&2
        exit 1
    fi
    sleep 0.1
done

# Prints the scenarios of the summary that have no failed check.
passed() {
    conformance server --url "$1" --requirements "$2" -o "$home/results" 2>/dev/null | sed -n 's/^✓ \([^:]*\):.*/\1/p' | sort
}

# The server has no tools of the suite's names. It answers a call of an unknown tool with a result that has `isError`, which these two
# scenarios accept; Lockhouse answers with a protocol error, as the specification says.
unknown_tools="tools-call-error
tools-call-simple-text"

status=0
for revision in 2025-11-25 2026-07-28; do
    passed "http://127.0.0.1:$port/mcp" "$revision" >"$home/alone"
    passed "$url" "$revision" >"$home/through"
    lost=$(comm -23 "$home/alone" "$home/through" | grep -vxF "$unknown_tools" || true)
    echo "$revision: $(wc -l <"$home/alone") scenarios pass alone, $(wc -l <"$home/through") through Lockhouse"
    if [ -n "$lost" ]; then
        echo "$revision: these pass alone and fail through Lockhouse: $lost"
        status=1
    fi
done
exit $status
