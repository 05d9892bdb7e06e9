#!/bin/sh
# Unpacks HAProxy, nginx and Caddy of Debian into build/balancers, without installing them. A second run finds the stamp of the first and
# does nothing. On a host without apt-get, or whose Debian or Ubuntu has not all of them, nothing is unpacked, and their tests are left out.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

packages="haproxy nginx caddy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1"
exit_if_installed "$packages"
mkdir -p "$build/packages"
# As root, apt-get would otherwise try to become the user _apt, who may not write here.
if ! (cd "$build/packages" && apt-get -o APT::Sandbox::User=root --quiet=2 download $packages) 2>"$build/log"; then
    echo "tests/balancers: left out, because apt-get cannot download $packages: $build/log" >&2
    exit 0
fi
for package in "$build/packages"/*.deb; do
    dpkg-deb --extract "$package" "$build/root"
done
mark_installed "$packages"
