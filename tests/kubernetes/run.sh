#!/bin/sh
# Checks the manifests of packaging/kubernetes, the Helm chart and the Compose file without a cluster and without a container engine:
# against schemas, their configuration by Lockhouse itself, HAProxy's files against the one that is tested, and the sandbox level under
# the security context that the manifests give the pod. The last needs root, and is left out otherwise.
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
# accepted TITLE COMMAND…: the command must succeed.
accepted() {
    title=$1 && shift
    if "$@" >"$work/log" 2>&1; then echo "pass  $title"; else echo "FAIL  $title: $(cat "$work/log")" && status=1; fi
}
# refused TITLE WORD COMMAND…: the command must fail, and name the word.
refused() {
    title=$1 word=$2 && shift 2
    if "$@" >"$work/log" 2>&1; then echo "FAIL  $title: accepted" && status=1
    elif grep -q -e "$word" "$work/log"; then echo "pass  $title"
    else echo "FAIL  $title: refused without the word $word: $(cat "$work/log")" && status=1; fi
}
documents() {
    "$bin/python" "$here/documents.py" "$@"
}
# changed FILE EXPRESSION: a copy of a file, changed by sed. It stops if nothing changes.
changed() {
    sed -e "$2" "$1" >"$work/changed.yaml"
    if cmp -s "$1" "$work/changed.yaml"; then stop "$2 changes nothing in $1"; fi
    echo "$work/changed.yaml"
}
# configured FOLDER: whether Lockhouse accepts the configuration and the policy of a folder.
configured() {
    "$LOCKHOUSE" --config "$1/config.toml" --policy "$1/policy.toml" config check &&
        "$LOCKHOUSE" --config "$1/config.toml" --policy "$1/policy.toml" policy check
}
# check_configuration TITLE FOLDER: Lockhouse accepts the files, and the controls show that it reads both.
check_configuration() {
    accepted "$1: its configuration" configured "$2"
    cp "$2/config.toml" "$work/config.sound" && sed 's/^drain_seconds/drain_second/' "$work/config.sound" >"$2/config.toml"
    refused "$1: its configuration with an unknown key" drain_second configured "$2"
    mv "$work/config.sound" "$2/config.toml"
    cp "$2/policy.toml" "$work/policy.sound" && echo 'allowed = 1' >>"$2/policy.toml"
    refused "$1: its policy with an unknown key" allowed configured "$2"
    mv "$work/policy.sound" "$2/policy.toml"
}

for place in base overlays/balanced overlays/clustered overlays/clustered-autoscaled; do
    file=$work/$(basename "$place").yaml
    "$bin/kubectl" kustomize "$manifests/$place" >"$file"
    accepted "$place is valid" documents valid "$file"
    # The controls: an unknown field, a value of another type, and an unknown kind.
    refused "$place with an unknown field" allowPrivilegeEscalations \
        documents valid "$(changed "$file" 's/allowPrivilegeEscalation:/allowPrivilegeEscalations:/')"
    refused "$place with a wrong type" "'yes' is not of type" documents valid "$(changed "$file" 's/runAsNonRoot: true/runAsNonRoot: "yes"/')"
    refused "$place with an unknown kind" StatefulSets documents valid "$(changed "$file" 's/^kind: StatefulSet/kind: StatefulSets/')"
    mkdir "$work/files" && documents files "$file" "$work/files"
    check_configuration "$place" "$work/files"
    rm -r "$work/files"
done
# What clients of the hosts select is what the balancer has.
is "the balancer is a client" "$(grep -c 'lockhouse.example.com/client: "true"' "$work/balanced.yaml")" 2

# The extensions of Kubernetes, whose schemas are in schemas/.
scaled=$work/clustered-autoscaled.yaml
refused "a ServiceMonitor with an unknown field" scrapeTimeouts documents valid "$(changed "$scaled" 's/scrapeTimeout:/scrapeTimeouts:/')"
refused "a ServiceMonitor without its service" "selects 0 services" \
    documents valid "$(changed "$scaled" '/^  labels:/,/^  name:/s#app.kubernetes.io/name:#app.kubernetes.io/part-of:#')"
refused "a ServiceMonitor with another port" "has the ports" documents valid "$(changed "$scaled" 's/^    port: http$/    port: metrics/')"
refused "a ScaledObject with an unknown field" maxReplicas documents valid "$(changed "$scaled" 's/maxReplicaCount:/maxReplicas:/')"
refused "a ScaledObject with an unknown key of its scaler" serverAddresses \
    documents valid "$(changed "$scaled" 's/^\( *\)threshold:/\1serverAddresses: x\n&/')"
refused "a ScaledObject with a wrong type" "'3' is not of type" \
    documents valid "$(changed "$scaled" 's/minReplicaCount: 3/minReplicaCount: "3"/')"
refused "a ScaledObject of another target" "no target" \
    documents valid "$(changed "$scaled" '/scaleTargetRef:/,/name:/s/name: lockhouse/name: other/')"
figures=$(grep -o 'lockhouse_[a-z_]*' "$scaled" | sort -u)
is "metrics of the ScaledObject" "$(echo "$figures" | tr '\n' ' ')" "lockhouse_executions_running lockhouse_pool_waiting "
for figure in $figures; do
    accepted "$figure is a metric" grep -q "^| \`$figure\` | gauge" "$root/docs/metrics.md"
done

# The chart: with its own values, Helm makes what Kustomize makes.
chart=$root/build/helm/lockhouse
KUBECTL=$bin/kubectl "$root/packaging/helm/pack" >/dev/null
render() {
    "$bin/helm" template lockhouse "$chart" --namespace lockhouse "$@"
}
accepted "the chart: helm lint" "$bin/helm" lint --strict "$chart"
render >"$work/helm.yaml"
render --set autoscaling.enabled=true >"$work/helm-scaled.yaml"
accepted "the chart makes overlays/clustered" documents equal "$work/clustered.yaml" "$work/helm.yaml"
accepted "the chart with autoscaling makes overlays/clustered-autoscaled" documents equal "$scaled" "$work/helm-scaled.yaml"
refused "the chart without autoscaling makes another" ScaledObject documents equal "$scaled" "$work/helm.yaml"
refused "the chart with an unknown value" "'replica' not allowed" render --set replica=5
cat >"$work/values.yaml" <<'END'
image: registry.test/other:2
replicas: 4
hosts: [one.test, "two.test:8443"]
storage: 9Gi
nats: {addresses: ["tls://a.test:4222", "tls://b.test:4222"], namespace: other-nats, replicas: 1}
autoscaling: {enabled: true, maxReplicas: 7, prometheus: "https://prometheus.test", namespace: other-monitoring}
config: |
  [pool]
  running = 8
policy: |
  version = 1
  [clients.prometheus]
  servers = {}
END
"$bin/helm" template lockhouse "$chart" --namespace elsewhere --values "$work/values.yaml" >"$work/other.yaml"
accepted "the chart with other values is valid" documents valid "$work/other.yaml"
# own_values FILE: the number of lines that have a text which other values replace.
own_values() {
    grep -cE '(registry|[" ]lockhouse)\.example\.com(/l|"|$)|5Gi|nats\.svc|monitoring\.svc|space(: |=)"lockhouse"|\.name: "(nats|monitoring)"' "$1" || true
}
is "the chart with its own values" "$(own_values "$work/helm-scaled.yaml")" 24
is "the chart with other values has none of its own" "$(own_values "$work/other.yaml")" 0
numbers() {
    grep -oE '(replicas|m..ReplicaCount)\b.*' "$1" | LC_ALL=C sort | tr '\n' ' '
}
is "the chart with its own numbers" "$(numbers "$work/helm-scaled.yaml")" "maxReplicaCount: 9 minReplicaCount: 3 replicas = 3 "
is "the chart with other numbers" "$(numbers "$work/other.yaml")" "maxReplicaCount: 7 minReplicaCount: 4 replicas = 1 "
checksum() {
    grep 'checksum/config' "$1"
}
is "other values start the pods again" "$([ "$(checksum "$work/helm.yaml")" = "$(checksum "$work/other.yaml")" ] || echo yes)" yes
mkdir "$work/files" && documents files "$work/other.yaml" "$work/files"
check_configuration "the chart with other values" "$work/files"

# Compose.
compose=$root/packaging/compose
cp -r "$root/packaging" "$work/packaging"
composed=$work/packaging/compose/compose.yaml
# compose_refused TITLE WORD EXPRESSION: the file must be refused when sed has changed it.
compose_refused() {
    cp "$(changed "$compose/compose.yaml" "$3")" "$composed"
    refused "$1" "$2" documents compose "$composed"
}
accepted "compose.yaml is valid" documents compose "$compose/compose.yaml"
compose_refused "compose.yaml with an unknown field" stop_grace_periods 's/stop_grace_period:/stop_grace_periods:/'
compose_refused "compose.yaml with a wrong type" "is not of type" 's/read_only: true/read_only: [1]/'
compose_refused "compose.yaml with an undeclared secret" nkey-3 's/source: nkey-2/source: nkey-3/'
compose_refused "compose.yaml with a writable root" "more rights" 's/read_only: true/read_only: false/'
compose_refused "compose.yaml without a health check" "without {'healthcheck'}" 's/^    healthcheck:/    x-healthcheck:/'
compose_refused "compose.yaml without its profile" "profile" 's#seccomp/lockhouse.json#seccomp/other.json#'
check_configuration "compose" "$work/packaging/compose"

# The files of HAProxy are that of packaging/balancers, with other names of hosts, certificate and port, and the DNS of their network.
same() {
    sed -e '1d' -e '/^resolvers/,/^$/d' -e 's#/etc/haproxy-tls/#/etc/haproxy/#' -e 's/bind :8443/bind :443/' \
        -e 's/server [a-z]* [^ ]*:7300\( resolvers cluster init-addr none\)*$/server HOST/' "$1" | uniq
}
same "$root/packaging/balancers/haproxy.cfg" >"$work/balancer.cfg"
for file in kubernetes/overlays/balanced compose; do
    same "$root/packaging/$file/haproxy.cfg" >"$work/haproxy.cfg"
    accepted "HAProxy of $file" diff "$work/balancer.cfg" "$work/haproxy.cfg"
    sed 's/retry-on .*/retry-on all-retryable-errors/' "$work/haproxy.cfg" >"$work/unsafe.cfg"
    refused "HAProxy of $file that repeats requests" all-retryable-errors diff "$work/balancer.cfg" "$work/unsafe.cfg"
done

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
