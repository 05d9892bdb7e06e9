//! Paths of the programs that tests start, as `cargo build --workspace` built them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

/// The build products that tests start, directly or through `lockhouse`. Tests fail if one of these is older than its
/// sources.
const PRODUCT: [&str; 3] = ["lockhouse", "lockhouse-worker", "liblockhouse_python"];

/// Returns the path of the `lockhouse` program under test: `LOCKHOUSE_BIN` if that is set, and otherwise `lockhouse`
/// in the target directory, which must be newer than its sources.
///
/// # Panics
/// If the program is missing, or a build product is older than one of its sources.
pub(crate) fn lockhouse() -> PathBuf {
    if let Some(program) = std::env::var_os("LOCKHOUSE_BIN") {
        return program.into();
    }
    static STALE: OnceLock<Option<String>> = OnceLock::new();
    let directory = target_directory();
    if let Some(fault) = STALE.get_or_init(|| PRODUCT.into_iter().find_map(|name| stale(&directory, name))) {
        panic!("{fault}: run cargo build --workspace");
    }
    let program = directory.join("lockhouse");
    assert!(program.is_file(), "{} is missing: run cargo build --workspace", program.display());
    program
}

/// Returns an error message that names a source file newer than the build product `name`, or `None` if no source file
/// is newer. Cargo writes the source paths of `NAME` or `NAME.so` into `NAME.d` in make's syntax. Programs that were
/// copied from elsewhere have no `.d` file and count as fresh.
fn stale(directory: &Path, name: &str) -> Option<String> {
    let rules = std::fs::read_to_string(directory.join(name).with_extension("d")).ok()?;
    // In make's syntax a space in a path is preceded by a backslash.
    let rules = rules.trim_end().replace("\\ ", "\0");
    let (file, sources) = rules.split_once(": ")?;
    let path = |text: &str| text.replace('\0', " ");
    let modified = |text: &str| Path::new(&path(text)).metadata().and_then(|file| file.modified());
    let built = modified(file).unwrap_or(SystemTime::UNIX_EPOCH);
    let newer = sources.split(' ').find(|source| modified(source).is_ok_and(|source| source > built));
    newer.map(|source| format!("{} is older than {}", path(file), path(source)))
}

/// Returns the path of the fixture server, an upstream server with tools for tests.
///
/// # Panics
/// If the fixture server is not built.
#[must_use]
pub fn fixture_server() -> PathBuf {
    let path = target_directory().join("fixture-server");
    assert!(path.is_file(), "{} is missing: run cargo build --workspace", path.display());
    path
}

/// Returns the directory into which cargo puts programs. The test programs themselves are in its subdirectory `deps`.
///
/// # Panics
/// If the path of the running test is unknown.
#[must_use]
pub fn target_directory() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let parents = test.ancestors().skip(1).find(|directory| !directory.ends_with("deps"));
    parents.map(Path::to_owned).expect("the target directory")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_program_older_than_one_of_its_sources_is_stale() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let write = |name: &str, seconds: u64| {
            let file = std::fs::File::create(path(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        let names = [path("program"), path("a.rs"), path("b c.rs")].map(|path| path.display().to_string());
        let rules = format!("{}: {} {}\n", names[0], names[1], names[2].replace(' ', "\\ "));
        assert_eq!(stale(directory.path(), "program"), None, "no sources are known");
        std::fs::write(path("program.d"), rules).unwrap();
        for (b, fault) in [(9, false), (11, true)] {
            write("program", 10);
            write("a.rs", 10);
            write("b c.rs", b);
            assert_eq!(stale(directory.path(), "program").is_some(), fault, "{b}");
        }
        std::fs::remove_file(path("program")).unwrap();
        assert!(stale(directory.path(), "program").is_some(), "a program that is missing");
    }
}
