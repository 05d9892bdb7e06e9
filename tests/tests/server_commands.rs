//! Tests of the `lockhouse server` commands, which add, list, test and remove upstream servers, and of their output.

mod add;
mod list;
mod logs;
mod output;
mod remove;
mod table_width;
mod test_command;

use std::path::PathBuf;

use lockhouse_tests::{CommandOutput, Lockhouse, fixture_server};

/// Returns the path of the user's configuration file `config.toml`.
fn config(lockhouse: &Lockhouse) -> PathBuf {
    lockhouse.path("config/lockhouse/config.toml")
}

fn text(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Runs `lockhouse server ARGUMENTS`.
fn server(lockhouse: &Lockhouse, arguments: &[&str]) -> CommandOutput {
    lockhouse.run(&[&["server"], arguments].concat())
}

/// Runs `lockhouse server add` for the fixture server, with this server name and these additional flags.
fn add_fixture(lockhouse: &Lockhouse, name: &str, flags: &[&str]) {
    let program = fixture_server();
    let added = server(lockhouse, &[&["add", name, "--", program.to_str().unwrap()], flags].concat());
    assert_eq!(added.status, Some(0), "{added:?}");
}

/// Returns the output of a finished command in a form that does not vary: without times, temporary paths, and the
/// column widths that depend on them.
fn normalized_output(finished: &CommandOutput) -> String {
    let program = fixture_server();
    let text = finished.transcript().replace(program.parent().unwrap().to_str().unwrap(), "[BIN]");
    let line = |line: &str| {
        let mut words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        for at in 1..words.len() {
            if ["ms", "s"].contains(&words[at]) && words[at - 1].parse::<f64>().is_ok() {
                words[at - 1] = "[TIME]";
                words[at] = "";
            }
        }
        let words = words.into_iter().filter(|word| !word.trim_matches('-').is_empty());
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
