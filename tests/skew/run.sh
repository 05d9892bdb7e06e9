#!/bin/sh
# Builds Lockhouse with next-version.patch, which makes the messages between fronts and engines those of a next version: a
# newer number, further members, an event and a request that this version does not know. Then runs fronts and engines of both
# builds with each other (check.py). Needs the build of this version for tests in target/debug.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

cd "$root"
rm -rf "$build/source"
mkdir -p "$build"
git clone --quiet . "$build/source"
git -C "$build/source" apply "$here/next-version.patch"
(cd "$build/source" && CARGO_TARGET_DIR="$build/target" "${CARGO:-cargo}" build --locked -p lockhouse)
# The workers are those of this version: what is tested is the edge between front and engine.
ln -f target/debug/lockhouse-worker target/debug/liblockhouse_python.so "$build/target/debug/"
python3 -B tests/skew/check.py target/debug/lockhouse "$build/target/debug/lockhouse"
