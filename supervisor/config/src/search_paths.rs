//! Finds configuration files, the Python interpreter, and the programs that are installed with Lockhouse.

use std::path::{Path, PathBuf};

use lockhouse_base::directories;
use lockhouse_engine::supervisor::MissingProgram;

const SYSTEM_CONFIG: &str = "/etc/lockhouse";
const SYSTEM_PROGRAMS: &str = "/usr/lib/lockhouse";
/// The path of the system's Python interpreter. It is preferred over others, since Linux distributions' builds of
/// Python are usually the fastest.
const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// Returns the path of a configuration file: `named` if it is given, else the file `name` in the user's configuration
/// directory, else the file `name` in `/etc/lockhouse`. `None` if no file is given and neither of the two exists.
pub(super) fn config_file(named: Option<&Path>, name: &str) -> Option<PathBuf> {
    let found = || config_candidates(name).into_iter().find(|path| path.exists());
    named.map(Path::to_owned).or_else(found)
}

/// Returns the paths that a configuration file may have which is not named: the first one that exists is used.
pub(super) fn config_candidates(name: &str) -> Vec<PathBuf> {
    let directories = directories::configuration().into_iter().chain([PathBuf::from(SYSTEM_CONFIG)]);
    directories.map(|directory| directory.join(name)).collect()
}

/// Whether this file is one of the service of this host.
pub(super) fn is_of_system(file: Option<&Path>) -> bool {
    file.and_then(Path::parent) == Some(Path::new(SYSTEM_CONFIG))
}

/// Returns the paths that a program of this name may have in `PATH`. Directories without an absolute path are left out:
/// they would make the current directory decide what runs.
fn in_path(name: &str) -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    directories.into_iter().filter(|directory| directory.is_absolute()).map(move |it| it.join(name))
}

/// Finds a program in the absolute directories of `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    in_path(name).find(|path| path.is_file())
}

/// Finds the Python interpreter: the configured one, else [`SYSTEM_PYTHON`], else the first `python3` in `PATH`.
pub(super) fn python_interpreter(configured: Option<&Path>) -> Result<PathBuf, MissingProgram> {
    let candidates = match configured {
        Some(path) => vec![path.to_owned()],
        None => [PathBuf::from(SYSTEM_PYTHON)].into_iter().chain(in_path("python3")).collect(),
    };
    let advice = "Install python3 3.10 or later, or set interpreter under [python] in the configuration.";
    first_existing(candidates, "python3", advice)
}

/// Finds the file `name` that is installed with Lockhouse: at the configured path if there is one; else in the
/// directory of this program, in `../lib/lockhouse` relative to it, or in `/usr/lib/lockhouse`. `what` describes the
/// file in the error.
pub fn installed_file(
    configured: Option<&Path>,
    name: &str,
    what: &'static str,
) -> Result<PathBuf, MissingProgram> {
    let candidates = installed_candidates(configured, name);
    let advice = "Install Lockhouse whole, or set its path in the configuration \
                  (extension under [python], worker under [javascript]).";
    first_existing(candidates, what, advice)
}

/// Returns the paths at which [`installed_file`] looks, in its order.
pub(crate) fn installed_candidates(configured: Option<&Path>, name: &str) -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let bin = program.parent().unwrap_or(Path::new("/usr/bin"));
    match configured {
        Some(path) => vec![path.to_owned()],
        None => vec![
            bin.join(name),
            bin.join("../lib/lockhouse").join(name),
            Path::new(SYSTEM_PROGRAMS).join(name),
        ],
    }
}

fn first_existing(
    candidates: Vec<PathBuf>,
    what: &'static str,
    advice: &'static str,
) -> Result<PathBuf, MissingProgram> {
    let found = candidates.iter().find(|path| path.is_file()).cloned();
    found.ok_or(MissingProgram { what, looked_at: candidates, advice })
}
