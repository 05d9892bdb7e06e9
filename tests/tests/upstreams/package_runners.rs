//! Tests that a server which `npx` runs does not depend on the files in the directory of the AI client.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal, fixture_server};

#[test]
fn npx_runs_nothing_of_the_current_directory_unless_the_configuration_names_it() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join("npx").is_file()) {
        return println!("skipped: npx is not in PATH");
    }
    let mut table = Table::new("a program planted in node_modules of the current directory");
    for (what, directory, runs) in [("control: cwd = \".\"", "cwd = \".\"\n", true), ("no cwd", "", false)] {
        let lockhouse = Lockhouse::new().policy("version = 1\n[servers.s]\nallow = [\"*\"]\n").config(&format!(
            "[servers.s]\ncommand = \"npx\"\nargs = [\"--offline\", \"-y\", \"planted-server\"]\nstart_timeout_seconds = 20\n{directory}"
        ));
        let mark = lockhouse.path("mark");
        let planted = format!("#!/bin/sh\necho > {}\nexec {}\n", mark.display(), fixture_server().display());
        let program = lockhouse.file("home/project/node_modules/.bin/planted-server", planted);
        std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
        lockhouse.file("home/project/package.json", "{\"name\": \"project\"}");
        for below in ["home/project", "home/project/node_modules"] {
            std::fs::create_dir_all(lockhouse.path(below)).unwrap();
            let mut command = lockhouse.command(&["tools", "list"]);
            let listed = CommandOutput::run(command.current_dir(lockhouse.path(below)), b"");
            table
                .row(format!("{what}: in {below}"), ensure(listed.stdout.contains("count") == runs, &listed));
        }
        table.row(what, equal(mark.exists(), runs));
    }
    table.finish();
}
