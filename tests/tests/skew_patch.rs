//! The patch of `make test-skew` applies to the sources, so that the slow test itself needs no repair when it is run.

use std::process::Command;

#[test]
fn the_patch_of_the_next_version_applies() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut git = Command::new("git");
    // Outside a repository too: `git apply` needs none.
    git.args(["apply", "--check", "tests/skew/next-version.patch"]).current_dir(root);
    let checked = git.output().expect("git");
    assert!(checked.status.success(), "renew the patch: {}", String::from_utf8_lossy(&checked.stderr));
}
