//! Attempts to be permitted more.

use super::{Attempt, try_all};

const ATTEMPTS: &[Attempt] = &[
    ("write another policy", "echo 'version = 1\n[servers.fixture]\nallow = [\"*\"]' > \"$CONFIG/policy.toml\" && secret"),
    ("lockhouse policy allow", "lockhouse policy allow fixture.env --unknown --yes; lockhouse policy allow fixture.env --unknown; secret"),
    (
        "replace the directory of the policy",
        "mv \"$CONFIG\" \"$CONFIG.old\" && mkdir \"$CONFIG\" && cp \"$CONFIG.old/config.toml\" \"$CONFIG\" &&
         echo 'version = 1\n[servers.fixture]\nallow = [\"*\"]' > \"$CONFIG/policy.toml\" && secret",
    ),
    (
        "a link in place of the policy",
        "echo 'version = 1\n[servers.fixture]\nallow = [\"*\"]' > \"$HOME/mine\" && ln -sf \"$HOME/mine\" \"$CONFIG/policy.toml\" && secret",
    ),
    (
        "another policy on the command line",
        "echo 'version = 1\n[servers.fixture]\nallow = [\"*\"]' > \"$HOME/mine\" && secret --policy \"$HOME/mine\"",
    ),
    (
        "another policy by the environment",
        "mkdir -p \"$HOME/other/lockhouse\" && cp \"$CONFIG/config.toml\" \"$HOME/other/lockhouse\" &&
         echo 'version = 1\n[servers.fixture]\nallow = [\"*\"]' > \"$HOME/other/lockhouse/policy.toml\" &&
         XDG_CONFIG_HOME=\"$HOME/other\" secret",
    ),
    (
        "another home directory",
        "mkdir -p \"$HOME/other/.config\" && cp -r \"$CONFIG\" \"$HOME/other/.config/lockhouse\" &&
         echo 'version = 1\n[servers.fixture]\nallow = [\"*\"]' > \"$HOME/other/.config/lockhouse/policy.toml\" && HOME=\"$HOME/other\" secret",
    ),
    (
        "an engine of its own",
        "echo 'version = 1\n[servers.fixture]\nallow = [\"*\"]' > \"$HOME/mine\" && secret --own --policy \"$HOME/mine\"",
    ),
    (
        "lockhouse run",
        "echo 'version = 1\n[servers.fixture]\nallow = [\"*\"]' > \"$HOME/mine\" &&
         lockhouse --config \"$CONFIG/config.toml\" --policy \"$HOME/mine\" run -c 'import fixture; fixture.env()' --language python | grep -q SECRET-CANARY",
    ),
    (
        "a shared engine of its own",
        "echo 'version = 1\n[servers.fixture]\nallow = [\"*\"]' > \"$HOME/mine\" &&
         (cat \"$CONFIG/config.toml\" && printf '[sharing]\\nengine = \"shared\"\\nidle_seconds = 1\\n') > \"$HOME/shared\" &&
         secret --config \"$HOME/shared\" --policy \"$HOME/mine\"",
    ),
    (
        "requirements of its own",
        "echo 'version = 1\n[servers.fixture]\nallow = [\"*\"]' > \"$HOME/mine\" && echo > \"$HOME/requirements\" && chmod 600 \"$HOME/requirements\" &&
         LOCKHOUSE_REQUIREMENTS=\"$HOME/requirements\" secret --policy \"$HOME/mine\"",
    ),
    (
        "requirements hidden in a user namespace",
        "export TOOLS && cp -r \"$CONFIG\" \"$HOME/copy\" && export COPY=\"$HOME/copy\" &&
         unshare -r -m sh -c 'for below in /usr /mnt /etc; do mount --bind $below $below && mount -o remount,bind,ro $below || exit; done;
         mount -t tmpfs -o mode=755 none /etc/lockhouse && mount -t tmpfs none /var/lib && cp \"$COPY/config.toml\" /etc/lockhouse &&
         printf \"version = 1\\n[servers.fixture]\\nallow = [\\\"*\\\"]\\n\" > /etc/lockhouse/policy.toml &&
         HOME=/etc/lockhouse unshare --user --map-user=1001 --map-group=1001 python3 \"$TOOLS/client.py\" \"import fixture; fixture.env()\"' | grep -q SECRET-CANARY",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_agent_is_permitted_more() {
    try_all("policy", ATTEMPTS).await;
}
