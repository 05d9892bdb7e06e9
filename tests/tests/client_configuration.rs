//! Configuration files of AI clients: read in their own formats, imported, and changed to start Lockhouse.

mod import;
mod init;
mod servers_files;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use lockhouse_tests::Lockhouse;

/// Returns an example configuration file in the format of the AI client `name`.
fn dialect(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("dialects").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Returns the paths of all files below a directory of the test, relative to that directory.
fn files(lockhouse: &Lockhouse, below: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(lockhouse.path(below)) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
