#!/bin/sh
# Installs the release build below PREFIX: install.sh PREFIX
set -eu

prefix=${1:?usage: install.sh PREFIX}
built=$(dirname "$0")/../target/release
install -D -m 755 "$built/lockhouse" "$prefix/bin/lockhouse"
install -D -m 755 "$built/lockhouse-worker" "$prefix/lib/lockhouse/lockhouse-worker"
install -D -m 644 "$built/liblockhouse_python.so" "$prefix/lib/lockhouse/liblockhouse_python.so"
echo "installed to $prefix; try: $prefix/bin/lockhouse doctor"
