//! Attempts at the files of the engine: secrets, pins, the audit log.

use super::{Attempt, try_all};

const ATTEMPTS: &[Attempt] = &[
    ("read the secret of a server", "grep -q SECRET-CANARY \"$CONFIG/config.toml\""),
    (
        "copy the configuration",
        "cp \"$CONFIG/config.toml\" \"$HOME/copy\" && grep -q SECRET-CANARY \"$HOME/copy\"",
    ),
    (
        "a hard link to the configuration",
        "ln \"$CONFIG/config.toml\" \"$HOME/link\" && grep -q SECRET-CANARY \"$HOME/link\"",
    ),
    (
        "a symbolic link to the configuration",
        "ln -s \"$CONFIG/config.toml\" \"$HOME/link\" && grep -q SECRET-CANARY \"$HOME/link\"",
    ),
    (
        "another server in the configuration",
        "printf '[servers.mine]\\ncommand = \"/mnt/fixture-server\"\\n' >> \"$CONFIG/config.toml\"",
    ),
    ("read the audit log", "cat \"$LOG\"/*.jsonl | grep -q '\"event\":\"call\"'"),
    ("add to the audit log", "for log in \"$LOG\"/*.jsonl; do echo '{}' >> \"$log\" || exit 1; done"),
    ("truncate the audit log", "for log in \"$LOG\"/*.jsonl; do : > \"$log\" || exit 1; done"),
    ("remove the audit log", "rm \"$LOG\"/*.jsonl"),
    ("move the audit log", "mv \"$LOG\" \"$LOG.old\""),
    (
        "read the key of the audit log",
        "find \"$STATE\" -name 'audit*key*' | grep -q . && cat $(find \"$STATE\" -name 'audit*key*') > /dev/null",
    ),
    ("list the state of the engine", "ls \"$STATE\" | grep -q ."),
    ("write into the state of the engine", "touch \"$STATE/mine\""),
    ("remove what a person has accepted", "mkdir -p \"$STATE/pins\" && rm -r \"$STATE/pins\""),
    ("change the mode of the state", "chmod 0777 \"$STATE\""),
    ("rename the state of the engine", "mv \"$STATE\" \"$STATE.old\""),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_agent_reaches_the_files_of_the_engine() {
    try_all("files", ATTEMPTS).await;
}
