//! Tests `lockhouse server`: managing upstream servers, and the output of its commands.

mod add;
mod list;
mod logs;
mod output;
mod remove;
mod test_command;

use std::path::PathBuf;

use lockhouse_tests::{CommandOutput, Lockhouse, fixture_server};

/// Returns the path of the user's configuration.
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

/// Adds the fixture server under a name and with flags.
fn add_fixture(lockhouse: &Lockhouse, name: &str, flags: &[&str]) {
    let program = fixture_server();
    let added = server(lockhouse, &[&["add", name, "--", program.to_str().unwrap()], flags].concat());
    assert_eq!(added.status, Some(0), "{added:?}");
}

/// Returns the transcript of a command without times, paths, and the column widths that depend on them.
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
