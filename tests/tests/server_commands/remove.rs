//! Tests of `lockhouse server remove`, which removes an upstream server from the configuration.

use lockhouse_tests::Lockhouse;

use crate::server_commands::{config, normalized_output, server, text};

const HAND_WRITTEN: &str = "\
# all servers of this machine

# the first one
[servers.first]
command = 'first'
[servers.first.env]
A = \"a\"

# the second one
[servers.second]
command = 'second'

# what they may use
[limits]
calls = 500
";

#[test]
fn removing_a_server_removes_its_tables_and_nothing_else() {
    let lockhouse = Lockhouse::new().config(HAND_WRITTEN);
    let removed = server(&lockhouse, &["remove", "first"]);
    insta::assert_snapshot!("removed", normalized_output(&removed));
    insta::assert_snapshot!("config_without_the_first", text(config(&lockhouse)));
    assert_eq!(server(&lockhouse, &["remove", "second"]).status, Some(0));
    insta::assert_snapshot!("config_without_servers", text(config(&lockhouse)));
}

#[test]
fn removing_the_only_table_preserves_unrelated_comments() {
    let lockhouse = Lockhouse::new().config("# about this file\n\n# about x\n[servers.x]\ncommand = 'x'\n");
    assert_eq!(server(&lockhouse, &["remove", "x"]).status, Some(0));
    assert_eq!(text(config(&lockhouse)), "# about this file\n");
}

#[test]
fn a_secret_is_deleted_with_its_last_server() {
    let lockhouse = Lockhouse::new();
    let token = "TOKEN=ghp_0123456789";
    assert_eq!(server(&lockhouse, &["add", "one", "-e", token, "--", "x"]).status, Some(0));
    let secret = lockhouse.path("config/lockhouse/secrets/one.TOKEN");
    let reference =
        format!("[servers.two]\ncommand = 'x'\nenv = {{ T = '${{file:{}}}' }}\n", secret.display());
    let lockhouse = {
        let written = text(config(&lockhouse));
        lockhouse.config(&format!("{written}\n{reference}"))
    };
    assert_eq!(server(&lockhouse, &["remove", "one"]).status, Some(0));
    assert!(secret.exists());
    let removed = server(&lockhouse, &["remove", "two"]);
    assert!(!secret.exists() && removed.stdout.contains("one.TOKEN"), "{removed:?}");
}

#[test]
fn a_server_in_another_programs_file_is_not_removed() {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    let before = text(lockhouse.path("servers.json"));
    let refused = server(&lockhouse, &["remove", "fixture"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("servers.json"), "{refused:?}");
    assert_eq!(text(lockhouse.path("servers.json")), before);
}

#[test]
fn a_misspelled_name_gets_a_suggestion() {
    let lockhouse = Lockhouse::new().config(HAND_WRITTEN);
    let refused = server(&lockhouse, &["remove", "frist"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("did you mean first?"), "{refused:?}");
    assert_eq!(text(config(&lockhouse)), HAND_WRITTEN);
    let refused = server(&Lockhouse::new(), &["remove", "x"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("server add"), "{refused:?}");
}
