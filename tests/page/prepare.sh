#!/bin/sh
# Installs the library that drives Chromium and the accessibility checker into build/page, each at one version. Chromium itself is
# that of the system: CHROMIUM names another one. A second run finds the stamp of the first and does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

packages="playwright-core@1.65.1 axe-core@4.14.1"
node_min=20
require npm
command -v "${CHROMIUM:-chromium}" >/dev/null 2>&1 || stop "Chromium is missing. Install it with: apt-get install chromium"
[ "$(node_major)" -ge "$node_min" ] || stop "node $(node --version) is too old: version $node_min or later is needed"
exit_if_installed "$packages"

echo "tests/page: installing into $build"
# Unquoted, because the shell must split the list into words.
# shellcheck disable=SC2086
npm_install $packages
mark_installed "$packages"
