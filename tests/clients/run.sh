#!/bin/sh
# Runs the AI clients and the SDK clients against Lockhouse. LOCKHOUSE names another binary than target/debug/lockhouse.
#   run.sh                    all of them
#   run.sh codex gemini       these AI clients
#   run.sh sdks               the SDK clients
#   run.sh setup              `lockhouse setup` and its undo on the files of the AI clients' own commands
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_installed
require_lockhouse debug
status=0
case "${1:-}" in
sdks | setup) ;;
*) python3 -B "$here/check_clients.py" "$LOCKHOUSE" "$@" || status=1 ;;
esac
case "${1:-}" in
"" | sdks) python3 -B "$here/check_sdks.py" "$LOCKHOUSE" || status=1 ;;
esac
case "${1:-}" in
"" | setup) python3 -B "$here/check_setup.py" "$LOCKHOUSE" || status=1 ;;
esac
exit $status
