#!/bin/sh
# Installs eight AI clients from npm and the SDK clients from npm and PyPI into build/clients, each at one version: some 1.5 GB, two
# minutes. A second run finds the stamp of the first and does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require npm
require_venv
pins=$(pins_of "$here/npm/package.json" "$here/sdks/package.json" && cksum <"$here/npm/package-lock.json" && cat "$here"/sdks/*.txt)
exit_if_installed "$pins"

rm -rf "$build"
mkdir -p "$build/sdks"
echo "tests/clients: installing AI clients and SDK clients into $build"
cp "$here/npm/package.json" "$here/npm/package-lock.json" "$build/"
# Newer versions of npm run the install scripts of the packages that package.json permits, older ones all of them.
# `npm ci` refuses a lock file in which packages for other platforms are incomplete; `npm install` keeps to its versions as well.
(cd "$build" && npm install --no-audit --no-fund --loglevel=error) || registry_failed npm
(cd "$build" && PATH="$build/node_modules/.bin:$PATH" npm rebuild --loglevel=error node opencode-ai @anthropic-ai/claude-code cline) ||
    stop "an install script failed; its output is above"
cp "$here/sdks/package.json" "$build/sdks/"
(cd "$build/sdks" && npm install --no-audit --no-fund --loglevel=error) || registry_failed npm
for requirements in "$here"/sdks/*.txt; do
    venv=venv-$(basename "$requirements" .txt)
    make_venv "$venv"
    pip_install "$venv" -r "$requirements"
done
mark_installed "$pins"
