#!/bin/sh
# Drives the page of target/debug/lockhouse with Chromium, and prints one row for each thing that it verifies.
#   run.sh                     everything
#   run.sh actions payloads    these parts: actions, keys, keyboard, views, payloads, attacks, rest
# LOCKHOUSE names another binary, CHROMIUM another browser. PICTURES=docs/pictures writes the pictures of docs/page.md.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_installed
require_lockhouse debug
exec node "$here/main.mjs" "$@"
