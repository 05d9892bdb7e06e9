//! `lockhouse token`, as people and scripts use it.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::Value;

use crate::{asks, token};

#[tokio::test]
async fn a_token_is_printed_once_alone_and_kept_as_its_hash() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("lockhouse token");
    let made = lockhouse.run(&["token", "create", "desk", "--only", "files", "web.get*", "--expires", "90d"]);
    let secret = made.stdout.trim_end().to_owned();
    table.row("it is all of standard output", equal(made.stdout.clone(), format!("{secret}\n")));
    let form = secret.len() == 52
        && secret.starts_with("lh_")
        && secret[3..].bytes().all(|b| b.is_ascii_alphanumeric());
    table.row("its form", ensure(form, &secret));
    table.row("it is not on standard error", ensure(!made.stderr.contains(&secret[3..12]), &made.stderr));
    let path = lockhouse.path("state/lockhouse/client-tokens.json");
    let kept = std::fs::read_to_string(&path).unwrap();
    table.row(
        "its hash alone is kept",
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
    let shown = lockhouse.run(&["token", "list"]).stdout;
    table.row(
        "list",
        ensure(shown.contains("desk") && shown.contains("valid") && !shown.contains(&secret[3..12]), &shown),
    );
    for (name, arguments, words) in [
        ("a name that is taken", &["token", "create", "desk"][..], "revoke it first"),
        ("no name", &["token", "create", "a b"], "letters, digits"),
        ("a name with a star", &["token", "create", "a*"], "letters, digits"),
        ("a time in the past", &["token", "create", "x", "--expires", "0s"], "such as 90d"),
        ("no time", &["token", "create", "x", "--expires", "soon"], "--expires"),
        ("a grant of nothing", &["token", "create", "x", "--only", "a b"], "--only"),
        ("a star in the middle", &["token", "create", "x", "--only", "a.*b"], "--only"),
        ("nobody's", &["token", "revoke", "nobody"], "there is no token"),
    ] {
        let finished = lockhouse.run(arguments);
        let told =
            finished.status == Some(2) && finished.stderr.contains(words) && finished.stdout.is_empty();
        table.row(name, ensure(told, format!("{finished:?}")));
    }
    let revoked = lockhouse.run(&["token", "revoke", "desk"]);
    table.row("revoke", equal(revoked.stdout, "desk is revoked\n".into()));
    table.row("once", equal(lockhouse.run(&["token", "revoke", "desk"]).status, Some(2)));
    let listed: Value = serde_json::from_str(&lockhouse.run(&["token", "list", "--json"]).stdout).unwrap();
    table.row("it is remembered", equal(listed[0]["state"].clone(), "revoked".into()));
    table.finish();
}

#[tokio::test]
async fn tokens_are_where_the_configuration_says_and_nobody_is_admitted_by_a_file_of_somebody_else() {
    let lockhouse = Lockhouse::new().config("[http]\ntokens = \"tokens/own.json\"\n");
    let secret = token(&lockhouse, &["desk"]);
    let path = lockhouse.path("config/lockhouse/tokens/own.json");
    assert!(path.is_file());
    let door = lockhouse.door().await;
    let mut table = Table::new("the file");
    let visitor = door.visitor(Some(&secret));
    table.row("control", equal(asks(&visitor).await.status, 200));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let reply = asks(&visitor).await;
    table.row("anybody could have written it", equal(reply.status, 503));
    table.row("when to try again", ensure(!reply.header("retry-after").is_empty(), &reply.body));
    door.says("take that away with chmod go-w").await;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    table.row("as it was", equal(asks(&visitor).await.status, 200));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, b"{").unwrap();
    table.row("damaged", equal(asks(&visitor).await.status, 503));
    std::fs::write(&path, whole).unwrap();
    table.row("whole again", equal(asks(&visitor).await.status, 200));
    std::fs::remove_file(&path).unwrap();
    table.row("gone", equal(asks(&visitor).await.status, 401));
    table.finish();
}
