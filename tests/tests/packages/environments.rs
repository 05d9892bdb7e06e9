//! Virtual environments for tests: one with packages that a test writes, and the one with packages of PyPI.

use std::path::{Path, PathBuf};
use std::process::Command;

use lockhouse_tests::CommandOutput;

/// Creates a virtual environment without pip in a directory, with packages that each consist of one module.
pub(crate) fn create(directory: &Path, packages: &[(&str, &str)]) {
    let mut venv = Command::new("/usr/bin/python3");
    let made = CommandOutput::run(venv.args(["-m", "venv", "--without-pip"]).arg(directory), b"");
    assert_eq!(made.status, Some(0), "{made:?}");
    let site = site_packages(directory);
    for (name, source) in packages {
        std::fs::write(site.join(format!("{name}.py")), source).unwrap();
        let info = site.join(format!("{name}-1.0.dist-info"));
        std::fs::create_dir_all(&info).unwrap();
        std::fs::write(info.join("METADATA"), format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"))
            .unwrap();
        std::fs::write(info.join("RECORD"), format!("{name}.py,,\n{name}-1.0.dist-info/RECORD,,\n")).unwrap();
    }
}

/// Returns the directory in which an environment has its modules.
pub(crate) fn site_packages(environment: &Path) -> PathBuf {
    let mut versions = std::fs::read_dir(environment.join("lib")).unwrap();
    versions.next().unwrap().unwrap().path().join("site-packages")
}

/// Returns the environment with packages of PyPI: the one that `LOCKHOUSE_PACKAGES` names, else the one that
/// `tests/libraries/prepare.sh packages` has installed. `None` if there is none.
pub(crate) fn of_pypi() -> Option<PathBuf> {
    let named = std::env::var_os("LOCKHOUSE_PACKAGES").map(PathBuf::from);
    let prepared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../build/libraries/packages/venv");
    let found = named.or(prepared.is_dir().then_some(prepared));
    if found.is_none() {
        println!("left out, since `make test-packages-python` has not installed the packages");
    }
    found
}
