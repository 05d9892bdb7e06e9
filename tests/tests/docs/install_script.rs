//! Tests of `packaging/install.sh`, which `make install` and `make uninstall` run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal};

/// Runs the script for the built programs of this test.
fn install(lockhouse: &Lockhouse, arguments: &[&str]) -> CommandOutput {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/install.sh");
    let binaries = lockhouse.program().parent().unwrap();
    CommandOutput::run(Command::new("sh").arg(script).args(arguments).env("BINARIES", binaries), b"")
}

/// Returns the paths of all files below a directory, relative to it.
fn files(directory: &Path) -> BTreeSet<String> {
    let (mut files, mut unread) = (BTreeSet::new(), vec![directory.to_owned()]);
    while let Some(read) = unread.pop() {
        let entries = std::fs::read_dir(read).unwrap().map(|entry| entry.unwrap().path());
        let (below, found): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
        unread.extend(below);
        files.extend(found.iter().map(|file| file.strip_prefix(directory).unwrap().display().to_string()));
    }
    files
}

#[test]
fn everything_is_installed_below_the_prefix_and_uninstalled_again() {
    let lockhouse = Lockhouse::new();
    let other = lockhouse.file("a prefix/share/man/man1/other.1", "");
    let prefix = lockhouse.path("a prefix");
    let argument = prefix.to_str().unwrap();
    let mut table = Table::new("packaging/install.sh");
    let none = install(&lockhouse, &["--uninstall", argument]);
    table.row("nothing is installed yet", ensure(none.status == Some(1), &none));
    let unnamed = install(&lockhouse, &[]);
    table.row("without a prefix", ensure(unnamed.stderr.contains("usage: "), &unnamed));
    let installed = install(&lockhouse, &[argument]);
    assert_eq!(installed.status, Some(0), "{installed:?}");
    let found = files(&prefix);
    for file in [
        "bin/lockhouse",
        "lib/lockhouse/lockhouse-worker",
        "lib/lockhouse/liblockhouse_python.so",
        "share/man/man1/lockhouse.1",
        "share/man/man1/lockhouse-run.1",
        "share/man/man1/lockhouse-audit-query.1",
        "share/bash-completion/completions/lockhouse",
        "share/zsh/site-functions/_lockhouse",
        "share/fish/vendor_completions.d/lockhouse.fish",
    ] {
        table.row(file, ensure(found.contains(file), &found));
    }
    let list = "share/lockhouse/installed-files";
    let listed = std::fs::read_to_string(prefix.join(list)).unwrap();
    let mut listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    listed.extend([list, "share/man/man1/other.1"].map(str::to_owned));
    table.row("every installed file is listed", equal(&listed, &found));
    let ran = Command::new(prefix.join("bin/lockhouse")).arg("--version").output().unwrap();
    table.row("the program runs", ensure(ran.status.success(), &ran));

    // The list of another version names a page that this version does not have, and files that are not Lockhouse's.
    lockhouse.file("a prefix/share/man/man1/lockhouse-old.1", "");
    let precious = lockhouse.file("precious", "");
    let lines = "share/man/man1/lockhouse-old.1\nshare/man/man1/other.1\nlib/lockhouse/../../../precious\n";
    let lines = format!(
        "{}{lines}{}\n",
        listed.iter().map(|file| format!("{file}\n")).collect::<String>(),
        precious.display()
    );
    lockhouse.file(&format!("a prefix/{list}"), lines);
    let again = install(&lockhouse, &[argument]);
    assert_eq!(again.status, Some(0), "{again:?}");
    table.row("another version is replaced", equal(&files(&prefix), &found));
    let removed = install(&lockhouse, &["--uninstall", argument]);
    table.row("uninstalled", equal(removed.status, Some(0)));
    table.row(
        "other files stay",
        equal(files(&prefix), BTreeSet::from(["share/man/man1/other.1".to_owned()])),
    );
    table.row("whatever the list names", ensure(other.exists() && precious.exists(), ()));
    table.finish();
}
