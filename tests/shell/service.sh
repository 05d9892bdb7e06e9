# shellcheck shell=sh
# Runs `lockhouse serve` for a script that has read suite.sh. Sets `home`, a temporary folder; at the script's end, the folder is removed and the
# processes in `pids` are ended.

home=$(mktemp -d)
pids=

end_processes() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    pids=
}

# Called by the trap.
# shellcheck disable=SC2329
end() {
    end_processes
    rm -rf "$home"
}
trap end EXIT INT TERM

# write_configuration FOLDER NAME COMMAND ARGUMENTS: writes config.toml and policy.toml with one server, whose tools AI clients have directly.
# ARGUMENTS are the strings of a TOML array. A script may append further keys of the server, and further tables, to config.toml.
write_configuration() {
    mkdir -p "$1"
    cat >"$1/config.toml" <<END
[http]
auth = "none"
[audit]
directory = "$1/audit"
[catalogue]
first_list_seconds = 10
[servers.$2]
command = "$3"
args = [$4]
expose = "direct"
END
    printf 'version = 1\n[servers.%s]\nallow = ["*"]\nresources = ["*"]\nprompts = ["*"]\n' "$2" >"$1/policy.toml"
}

# serve FOLDER: starts Lockhouse with the configuration of the folder, waits until it listens, and sets `url`.
serve() {
    HOME="$1" XDG_CONFIG_HOME="$1" XDG_STATE_HOME="$1" XDG_CACHE_HOME="$1" XDG_RUNTIME_DIR="$1" \
        "$LOCKHOUSE" serve --listen 127.0.0.1:0 --config "$1/config.toml" --policy "$1/policy.toml" 2>"$1/log" &
    served=$!
    pids="$pids $served"
    url=
    tries=0
    while [ -z "$url" ]; do
        url=$(sed -n 's/.*listening at \(http:[^ ]*\).*/\1/p' "$1/log" | head -n 1)
        tries=$((tries + 1))
        if ! kill -0 "$served" 2>/dev/null || [ $tries -gt 600 ]; then
            cat "$1/log" >&2
            exit 1
        fi
        [ -n "$url" ] || sleep 0.1
    done
}
