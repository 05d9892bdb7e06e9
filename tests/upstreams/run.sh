#!/bin/sh
# Runs every case of tests/upstreams, the programs of examples, three servers over HTTP+SSE, then every server of servers.py, or with
# --subset those that prepare.sh --subset installs. LOCKHOUSE names another binary than target/debug/lockhouse. One part alone, or
# less of it:
#   run.sh cases files typescript    run.sh examples operator    run.sh sse everything    run.sh servers chroma redis
# `run.sh restarts` is a test of its own, of ten servers that setup takes over, and needs the full set.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_installed
require_lockhouse debug

check() {
    part=$1
    shift
    "$build/venv/bin/python" -B "$here/check_$part.py" "$LOCKHOUSE" "$@"
}

case "${1:-}" in
cases | servers | examples | sse | restarts) check "$@" ;;
"" | --subset)
    status=0
    check cases || status=1
    check examples || status=1
    check sse || status=1
    check servers "$@" || status=1
    exit $status
    ;;
*)
    echo "usage: run.sh [--subset] | run.sh cases [CASE | LANGUAGE | ERA]... | run.sh examples [EXAMPLE]... | run.sh sse [SERVER]... | run.sh servers [--subset] [NAME]... | run.sh restarts [--without-sandbox]" >&2
    exit 2
    ;;
esac
