#!/bin/sh
# Installs the inspector of MCP into build/inspector, at one version, with a Node that it runs on.
# A second run finds the stamp of the first and does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

prepare_node_program @modelcontextprotocol/inspector@2.12.0
