#!/bin/sh
# Installs the official conformance suite of MCP into build/conformance, at one version, with a Node that it runs on.
# A second run finds the stamp of the first and does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

prepare_node_program @modelcontextprotocol/conformance@0.2.0-alpha.12
