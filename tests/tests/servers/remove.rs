//! `lockhouse server remove`.

use lockhouse_tests::Lockhouse;

use crate::{config, server, text, told};

const WRITTEN: &str = "\
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
fn a_removed_server_takes_its_tables_along_and_nothing_else() {
    let lockhouse = Lockhouse::new().config(WRITTEN);
    let removed = server(&lockhouse, &["remove", "first"]);
    insta::assert_snapshot!("removed", told(&removed));
    insta::assert_snapshot!("config_without_the_first", text(config(&lockhouse)));
    assert_eq!(server(&lockhouse, &["remove", "second"]).status, Some(0));
    insta::assert_snapshot!("config_without_servers", text(config(&lockhouse)));
}

#[test]
fn the_only_table_leaves_the_words_that_are_not_about_it() {
    let lockhouse = Lockhouse::new().config("# about this file\n\n# about x\n[servers.x]\ncommand = 'x'\n");
    assert_eq!(server(&lockhouse, &["remove", "x"]).status, Some(0));
    assert_eq!(text(config(&lockhouse)), "# about this file\n");
}

#[test]
fn a_secret_goes_with_its_server_unless_another_one_has_it() {
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
fn a_server_of_another_programs_file_is_not_taken_out_there() {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    let before = text(lockhouse.path("servers.json"));
    let refused = server(&lockhouse, &["remove", "fixture"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("servers.json"), "{refused:?}");
    assert_eq!(text(lockhouse.path("servers.json")), before);
}

#[test]
fn a_name_that_is_nearly_right_is_told() {
    let lockhouse = Lockhouse::new().config(WRITTEN);
    let refused = server(&lockhouse, &["remove", "frist"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("did you mean first?"), "{refused:?}");
    assert_eq!(text(config(&lockhouse)), WRITTEN);
    let refused = server(&Lockhouse::new(), &["remove", "x"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("server add"), "{refused:?}");
}
