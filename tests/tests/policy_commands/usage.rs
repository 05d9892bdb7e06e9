//! Tests of wrong usage of the `lockhouse policy` commands: each error message shows the correct usage.

use lockhouse_tests::{Table, ensure};

#[test]
fn wrong_usage_is_reported_with_the_correct_usage() {
    let lockhouse = super::lockhouse();
    lockhouse.file("home/broken.toml", "version = 2\n");
    let mut table = Table::new("wrong usage");
    let rows: [(&[&str], &str); 22] = [
        (&["check", "--format", "long"], "short"),
        (&["check", "--format", "short", "--json"], "cannot be used with"),
        (&["explain"], "SERVER.TOOL"),
        (&["explain", "fixture"], "SERVER.TOOL"),
        (&["explain", "fixture.add", "--args", "{"], "JSON object"),
        (&["explain", "fixture.add", "--args", "[1, 2]"], "JSON object"),
        (&["explain", "fixture.add", "--resource", "u:x"], "only the name of a server"),
        (&["explain", "fixture.add", "--prompt", "x"], "only the name of a server"),
        (&["explain", "fixture", "--prompt", "x", "--resource", "u:x"], "cannot be used with"),
        (&["explain", "fixture", "--resource", ""], "resource"),
        (&["diff"], "OLD"),
        (&["diff", "policy.toml"], "name a second file"),
        (&["diff", "policy.toml", "missing.toml"], "missing.toml"),
        (&["diff", "policy.toml", "broken.toml"], "broken.toml:1"),
        (&["dry-run"], "NEW"),
        (&["dry-run", "broken.toml"], "broken.toml:1"),
        (&["suggest", "--force"], "--output"),
        (&["allow"], "SERVER.TOOL"),
        (&["ask", "fixture"], "SERVER.PREFIX*"),
        (&["deny", "fixture.*_all"], "only at the end"),
        (&["allow", "fixture.a+dd"], "cannot contain"),
        (&["allow", "fixture.add", "--policy", "broken.toml"], "broken.toml:1"),
    ];
    for (arguments, words) in rows {
        let finished = lockhouse.run(&[&["policy"], arguments].concat());
        let told =
            finished.status == Some(2) && finished.stderr.contains(words) && finished.stdout.is_empty();
        table.row(arguments.join(" "), ensure(told, finished));
    }
    table.finish();
}
