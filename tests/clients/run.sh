#!/bin/sh
# Runs the AI clients and the SDK clients against Lockhouse. LOCKHOUSE names another binary than target/debug/lockhouse.
#   run.sh                    all of them
#   run.sh codex gemini       these AI clients
#   run.sh sdks               the SDK clients
#   run.sh setup              `lockhouse setup` and its undo on the files of the AI clients' own commands
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
lockhouse=${LOCKHOUSE:-$root/target/debug/lockhouse}

if [ ! -f "$root/build/clients/stamp" ]; then
    echo "tests/clients: nothing is installed yet; run tests/clients/prepare.sh" >&2
    exit 1
fi
status=0
case "${1:-}" in
sdks | setup) ;;
*) python3 -B "$here/check_clients.py" "$lockhouse" "$@" || status=1 ;;
esac
case "${1:-}" in
"" | sdks) python3 -B "$here/check_sdks.py" "$lockhouse" || status=1 ;;
esac
case "${1:-}" in
"" | setup) python3 -B "$here/check_setup.py" "$lockhouse" || status=1 ;;
esac
exit $status
