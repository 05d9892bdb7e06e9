//! The folders that a program file needs beside itself: its virtual environment, `node_modules`, or project folder.

use std::path::{Path, PathBuf};

/// Files that mark the root of a project.
const PROJECT_FILES: [&str; 5] =
    ["package.json", "pyproject.toml", "setup.py", "requirements.txt", "deno.json"];
/// The maximum number of directories above a file that are searched for the root of its project.
const LEVELS_MAX: usize = 6;
/// The maximum size in bytes of `pyvenv.cfg`.
const VENV_BYTES_MAX: u64 = 16 * 1024;

/// Returns the folders, without symbolic links. They may contain protected places: the caller checks them.
pub(super) fn folders(file: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = virtual_environment(file).into_iter().collect();
    if let Some(environment) = folders.first() {
        folders.extend(base_of(environment));
    }
    if let Ok(resolved) = std::fs::canonicalize(file) {
        folders.extend(virtual_environment(&resolved));
        folders.extend(libraries(&resolved));
        match node_modules(&resolved) {
            Some(packages) => folders.push(packages),
            None => folders.extend(project(&resolved)),
        }
    }
    folders.iter().filter_map(|folder| std::fs::canonicalize(folder).ok()).collect()
}

/// Returns the virtual environment of `ENVIRONMENT/bin/PROGRAM`.
fn virtual_environment(file: &Path) -> Option<PathBuf> {
    let root = prefix(file)?;
    root.join("pyvenv.cfg").is_file().then(|| root.to_owned())
}

/// Returns the installation of Python on which a virtual environment is based.
fn base_of(environment: &Path) -> Option<PathBuf> {
    let text =
        lockhouse_base::files::read_bounded(&environment.join("pyvenv.cfg"), VENV_BYTES_MAX).ok()??;
    let home = text.lines().find_map(|line| line.strip_prefix("home")?.trim_start().strip_prefix('='))?;
    Path::new(home.trim()).parent().map(Path::to_owned)
}

/// Returns the libraries of the Python or Node.js installation `PREFIX/bin/PROGRAM`.
fn libraries(file: &Path) -> Option<PathBuf> {
    let libraries = prefix(file)?.join("lib");
    let mut entries = std::fs::read_dir(&libraries).ok()?.flatten();
    let is_known = |name: &str| name.starts_with("python3") || name == "node_modules";
    entries.any(|entry| entry.file_name().to_str().is_some_and(is_known)).then_some(libraries)
}

/// Returns `PREFIX` of `PREFIX/bin/PROGRAM`.
fn prefix(file: &Path) -> Option<&Path> {
    let directory = file.parent()?;
    directory.parent().filter(|_| directory.file_name().is_some_and(|name| name == "bin"))
}

/// Returns the outermost `node_modules` above a file. Packages share it.
fn node_modules(file: &Path) -> Option<PathBuf> {
    let above = file
        .ancestors()
        .skip(1)
        .filter(|folder| folder.file_name().is_some_and(|name| name == "node_modules"));
    above.last().map(Path::to_owned)
}

/// Returns the root of the project of a file, and for a script its directory.
fn project(file: &Path) -> Vec<PathBuf> {
    let mut above = file.ancestors().skip(1).take(LEVELS_MAX);
    let root = above.find(|folder| PROJECT_FILES.iter().any(|name| folder.join(name).is_file()));
    // A compiled program, such as `~/bin/server`, has nothing beside it.
    let beside = file.parent().filter(|_| file.extension().is_some());
    root.into_iter().chain(beside).map(Path::to_owned).collect()
}
