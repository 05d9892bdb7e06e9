#!/bin/sh
# Installs the authorization server oidc-provider of npm into build/logins, at one version, with a Node that it runs on.
# A second run finds the stamp of the first and does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

prepare_node_program oidc-provider@9.13.3
