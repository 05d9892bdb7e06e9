//! AI clients' own files: read as they are, taken over, and pointed at Lockhouse.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod import;
mod init;
mod servers;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use lockhouse_tests::Lockhouse;

/// A file as its client writes it.
fn dialect(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("dialects").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Files below a directory of the test, from there on.
fn files(lockhouse: &Lockhouse, below: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(lockhouse.path(below)) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
