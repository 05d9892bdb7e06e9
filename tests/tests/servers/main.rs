//! `lockhouse server`: what people do with upstream servers, and what they read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod add;
mod list;
mod logs;
mod output;
mod remove;
mod trial;

use std::path::PathBuf;

use lockhouse_tests::{Finished, Lockhouse, fixture_server};

/// Where the user's own configuration is.
fn config(lockhouse: &Lockhouse) -> PathBuf {
    lockhouse.path("config/lockhouse/config.toml")
}

fn text(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// `lockhouse server ARGUMENTS`.
fn server(lockhouse: &Lockhouse, arguments: &[&str]) -> Finished {
    lockhouse.run(&[&["server"], arguments].concat())
}

/// Adds the fixture server under a name, with its flags.
fn add_fixture(lockhouse: &Lockhouse, name: &str, flags: &[&str]) {
    let program = fixture_server();
    let added = server(lockhouse, &[&["add", name, "--", program.to_str().unwrap()], flags].concat());
    assert_eq!(added.status, Some(0), "{added:?}");
}

/// What a person read, without times and places, and without the widths that depend on them.
fn told(finished: &Finished) -> String {
    let program = fixture_server();
    let text = finished.told().replace(program.parent().unwrap().to_str().unwrap(), "[BIN]");
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
