//! Tests of `lockhouse token`, the command that creates, lists and revokes bearer tokens.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::Value;

use crate::access::{list_tools, token};

#[tokio::test]
async fn a_new_token_is_printed_once_and_only_its_hash_is_stored() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("lockhouse token");
    let made = lockhouse.run(&["token", "create", "desk", "--only", "files", "web.get*", "--expires", "90d"]);
    let secret = made.stdout.trim_end().to_owned();
    table.row("standard output is only the token", equal(made.stdout.clone(), format!("{secret}\n")));
    let form = secret.len() == 52
        && secret.starts_with("lh_")
        && secret[3..].bytes().all(|b| b.is_ascii_alphanumeric());
    table.row("its form", ensure(form, &secret));
    table.row(
        "the token is not on standard error",
        ensure(!made.stderr.contains(&secret[3..12]), &made.stderr),
    );
    let path = lockhouse.path("state/lockhouse/client-tokens.json");
    let kept = std::fs::read_to_string(&path).unwrap();
    table.row(
        "only its hash is stored",
        ensure(!kept.contains(&secret[3..12]) && kept.contains("sha256"), &kept),
    );
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    table.row("for its owner alone", equal(mode, 0o600));
    let listed: Value = serde_json::from_str(&lockhouse.run(&["token", "list", "--json"]).stdout).unwrap();
    let row = &listed[0];
    let says = row["name"] == "desk"
        && row["state"] == "valid"
        && row["only"] == serde_json::json!(["files", "web.get*"]);
    table.row(
        "list --json",
        ensure(says && row["expires"].is_string() && row.get("sha256").is_none(), &listed),
    );
    let printed = lockhouse.run(&["token", "list"]).stdout;
    table.row(
        "list",
        ensure(
            printed.contains("desk") && printed.contains("valid") && !printed.contains(&secret[3..12]),
            &printed,
        ),
    );
    for (name, arguments, words) in [
        ("a name that exists", &["token", "create", "desk"][..], "revoke it first"),
        ("no name", &["token", "create", "a b"], "letters, digits"),
        ("a name with a star", &["token", "create", "a*"], "letters, digits"),
        ("a time in the past", &["token", "create", "x", "--expires", "0s"], "such as 90d"),
        ("no time", &["token", "create", "x", "--expires", "soon"], "--expires"),
        ("a grant of nothing", &["token", "create", "x", "--only", "a b"], "--only"),
        ("a star in the middle", &["token", "create", "x", "--only", "a.*b"], "--only"),
        ("nobody's", &["token", "revoke", "nobody"], "there is no valid token"),
    ] {
        let finished = lockhouse.run(arguments);
        let reported =
            finished.status == Some(2) && finished.stderr.contains(words) && finished.stdout.is_empty();
        table.row(name, ensure(reported, format!("{finished:?}")));
    }
    let revoked = lockhouse.run(&["token", "revoke", "desk"]);
    table.row("revoke", equal(revoked.stdout, "revoked desk\n".into()));
    table.row("once", equal(lockhouse.run(&["token", "revoke", "desk"]).status, Some(2)));
    let listed: Value = serde_json::from_str(&lockhouse.run(&["token", "list", "--json"]).stdout).unwrap();
    table.row("the use is recorded", equal(listed[0]["state"].clone(), "revoked".into()));
    table.finish();
}

#[tokio::test]
async fn the_token_file_is_configurable_and_is_rejected_if_another_user_owns_it() {
    let lockhouse = Lockhouse::new().config("[http]\ntokens = \"tokens/own.json\"\n");
    let secret = token(&lockhouse, &["desk"]);
    let path = lockhouse.path("config/lockhouse/tokens/own.json");
    assert!(path.is_file());
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("the file");
    let http_client = daemon.http_client(Some(&secret));
    table.row("control", equal(list_tools(&http_client).await.status, 200));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let reply = list_tools(&http_client).await;
    table.row("a world-writable file", equal(reply.status, 503));
    table.row("when to try again", ensure(!reply.header("retry-after").is_empty(), &reply.body));
    daemon.wait_for_log("prevent that with chmod go-w").await;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    table.row("the original mode", equal(list_tools(&http_client).await.status, 200));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, b"{").unwrap();
    table.row("damaged", equal(list_tools(&http_client).await.status, 503));
    std::fs::write(&path, whole).unwrap();
    table.row("whole again", equal(list_tools(&http_client).await.status, 200));
    std::fs::remove_file(&path).unwrap();
    table.row("a missing file", equal(list_tools(&http_client).await.status, 401));
    table.finish();
}
