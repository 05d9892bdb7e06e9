//! Tests of the configuration files of AI clients: Lockhouse reads them in their own formats, imports servers from
//! them, adds itself to them, and takes these changes back.

mod import;
mod init;
mod root_user;
mod servers_files;
mod setup;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use lockhouse_tests::Lockhouse;

/// Returns the contents of `tests/dialects/NAME`, an example of the configuration file of an AI client.
fn dialect(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("dialects").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Returns the sorted names of the entries of the directory `below` in the test directory. The list is empty if the
/// directory does not exist.
fn files(lockhouse: &Lockhouse, below: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(lockhouse.path(below)) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
