#!/bin/sh
# Checks the manifests of packaging/kubernetes without a cluster: against the schemas of Kubernetes, HAProxy's own check of its file, and
# the sandbox level under the security context that the manifests give the pod. The last needs root, and is left out otherwise.
set -eu
. "$(dirname "$0")/../shell/suite.sh"
require_installed
require_lockhouse debug

manifests=$root/packaging/kubernetes
bin=$build/venv/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
is() {
    if [ "$2" = "$3" ]; then echo "pass  $1"; else echo "FAIL  $1: $2, expected $3"; status=1; fi
}
# holds FILE: prints whether all documents of a file are valid.
holds() {
    if "$bin/kubernetes-validate" --strict "$1" >"$work/log" 2>&1; then echo yes; else echo no; fi
}

for place in base overlays/balanced overlays/clustered; do
    file=$work/$(basename "$place").yaml
    "$bin/kubectl" kustomize "$manifests/$place" >"$file"
    is "$place is valid" "$(holds "$file")" yes
    # The controls: an unknown field, and a value of another type.
    sed 's/allowPrivilegeEscalation:/allowPrivilegeEscalations:/' "$file" >"$work/field.yaml"
    is "$place with an unknown field" "$(holds "$work/field.yaml")" no
    sed 's/runAsNonRoot: true/runAsNonRoot: "yes"/' "$file" >"$work/type.yaml"
    is "$place with a wrong type" "$(holds "$work/type.yaml")" no
done
# What clients of the hosts select is what the balancer has.
is "the balancer is a client" "$(grep -c 'lockhouse.example.com/client: "true"' "$work/balanced.yaml")" 2

# The balancer's file is that of packaging/balancers, with other names of hosts, certificate and port, and the cluster's DNS.
same() {
    sed -e '1d' -e '/^resolvers/,/^$/d' -e 's#/etc/haproxy-tls/#/etc/haproxy/#' -e 's/bind :8443/bind :443/' \
        -e 's/server one .*/server one HOST/' -e 's/server two .*/server two HOST/' "$1"
}
same "$manifests/overlays/balanced/haproxy.cfg" >"$work/one"
same "$root/packaging/balancers/haproxy.cfg" >"$work/two"
if cmp -s "$work/one" "$work/two"; then is "both files of HAProxy" same same; else is "both files of HAProxy" "$(diff "$work/one" "$work/two")" same; fi

# level PROFILE: prints the protections that are absent, and the level, in the pod's security context.
level() {
    env -i PATH=/usr/bin:/bin HOME="$work/state" STATE_DIRECTORY="$work/state" CACHE_DIRECTORY="$work/cache" \
        RUNTIME_DIRECTORY="$work/run" "$PYTHON" "$here/seccomp.py" "$1" 61499 "$LOCKHOUSE" --config "$work/config.toml" \
        --policy "$work/policy.toml" doctor --json |
        "$PYTHON" -c 'import json, sys; report = json.load(sys.stdin); print(report["level"], *sorted(f["protection"] for f in report["protections"] if f["verdict"] != "holds"), sep=", ")'
}
if [ "$(id -u)" -eq 0 ]; then
    chmod 755 "$work"
    cp "$manifests/base/config.toml" "$manifests/base/policy.toml" "$work"
    mkdir "$work/state" "$work/cache" "$work/run"
    chown 61499:61499 "$work/state" "$work/cache" "$work/run"
    is "the level in the pod's context" "$(level "$manifests/seccomp/lockhouse.json")" "reduced, control group per worker"
    # The control: a profile that refuses namespaces, as the default of container runtimes does.
    sed 's/"acct",/"acct", "unshare", "mount", "pivot_root", "setns", "umount2",/' "$manifests/seccomp/lockhouse.json" >"$work/strict.json"
    is "the level without namespaces" "$(level "$work/strict.json")" "reduced, control group per worker, namespaces, empty root, network namespace"
else
    echo "left out: the level in the pod's context, which needs root"
fi
exit "$status"
