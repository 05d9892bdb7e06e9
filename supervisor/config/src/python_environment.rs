//! The virtual environment with the Python packages that the configuration names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lockhouse_base::directories;

use super::package_spec::PackageSpec;

/// Maximum number of entries of the environment's folders that are read.
const ENTRIES_MAX: usize = 20_000;
/// Maximum number of names of modules of a Python environment. The zygote without packages receives them, in one message.
/// Bound: configuration and policy.
const MODULES_MAX: usize = 1_500;
/// Maximum length of the name of a module, in bytes.
const MODULE_BYTES_MAX: usize = 40;
/// Modules of every virtual environment, which are no packages for programs.
const INSTALLERS: [&str; 5] = ["pip", "setuptools", "pkg_resources", "wheel", "uv"];

/// Modules whose names differ from the names of their packages. Needed only as long as a package is not installed.
const MODULE_NAMES: [(&str, &str); 6] = [
    ("scikit-learn", "sklearn"),
    ("pillow", "PIL"),
    ("beautifulsoup4", "bs4"),
    ("pyyaml", "yaml"),
    ("python-dateutil", "dateutil"),
    ("opencv-python-headless", "cv2"),
];

/// Returns the directory in which `lockhouse python` manages environments: `python` in the state directory.
pub fn managed_directory() -> Option<PathBuf> {
    Some(directories::state()?.join("python"))
}

/// Returns the environment in use: the configured directory, or the managed environment. The link to the managed
/// environment is resolved, so that another environment is another path.
pub fn environment_in_use(configured: Option<&Path>) -> Option<PathBuf> {
    match configured {
        Some(path) => Some(path.to_owned()),
        None => {
            let current = managed_directory()?.join("current");
            Some(std::fs::canonicalize(&current).unwrap_or(current))
        }
    }
}

/// Returns the names of the top-level modules that programs with packages can import in addition to the standard
/// modules: those that are installed in the environment, and those that the packages are expected to have.
pub(super) fn importable_modules(environment: Option<&Path>, packages: &[PackageSpec]) -> BTreeSet<String> {
    let mut modules: BTreeSet<String> = packages.iter().map(expected_module).collect();
    for directory in environment.map(site_packages).unwrap_or_default() {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().take(ENTRIES_MAX);
        let names = entries.filter_map(|entry| module_name(&entry.file_name().to_string_lossy()));
        modules.extend(names.take(MODULES_MAX.saturating_sub(modules.len())));
    }
    modules
}

fn expected_module(package: &PackageSpec) -> String {
    let name = package.normalized_name();
    let known = MODULE_NAMES.iter().find(|(package, _)| *package == name);
    known.map_or_else(|| name.replace('-', "_"), |(_, module)| (*module).to_owned())
}

/// Returns the folders with modules of the configured environment, and of the virtual environment of the configured
/// interpreter.
pub(super) fn code_folders(environment: Option<&Path>, interpreter: Option<&Path>) -> Vec<PathBuf> {
    let of_interpreter = interpreter.and_then(virtual_environment);
    environment.into_iter().chain(of_interpreter.as_deref()).flat_map(site_packages).collect()
}

/// Returns the folder of the virtual environment that an interpreter belongs to: its modules run whenever it starts.
pub(super) fn virtual_environment(interpreter: &Path) -> Option<PathBuf> {
    let folders = interpreter.ancestors().skip(1).take(2);
    folders.into_iter().find(|folder| folder.join("pyvenv.cfg").is_file()).map(Path::to_owned)
}

/// Returns the folders with the modules of a virtual environment, one for each version of Python.
fn site_packages(environment: &Path) -> Vec<PathBuf> {
    let versions = std::fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    let folders = versions.take(ENTRIES_MAX).map(|version| version.path().join("site-packages"));
    folders.filter(|folder| folder.is_dir()).collect()
}

/// Returns the name of the module that a file or folder in `site-packages` contains. `None` if it contains none that
/// programs import.
fn module_name(entry: &str) -> Option<String> {
    let (stem, ending) = entry.split_once('.').unwrap_or((entry, ""));
    let is_module = matches!(ending, "" | "py") || ending.ends_with("so");
    let is_name = stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let starts_well = stem.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let is_importable = is_module && is_name && starts_well && stem.len() <= MODULE_BYTES_MAX;
    (is_importable && !INSTALLERS.contains(&stem)).then(|| stem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_of_an_interpreter_are_those_of_its_environment() {
        let parent = tempfile::tempdir().expect("a directory");
        let environment = parent.path().join("venv");
        let site = environment.join("lib/python3.11/site-packages");
        std::fs::create_dir_all(&site).expect("a folder");
        let interpreter = environment.join("bin/python");
        assert!(code_folders(None, Some(&interpreter)).is_empty(), "no virtual environment");
        std::fs::write(environment.join("pyvenv.cfg"), "").expect("a file");
        assert_eq!(code_folders(None, Some(&interpreter)), std::slice::from_ref(&site));
        assert_eq!(code_folders(Some(&environment), None), [site]);
    }

    #[test]
    fn modules_are_those_of_folders_and_files() {
        let environment = tempfile::tempdir().expect("a directory");
        let site = environment.path().join("lib/python3.11/site-packages");
        for folder in ["pandas", "pandas-3.0.dist-info", "__pycache__", "_private", "pip", "numpy.libs"] {
            std::fs::create_dir_all(site.join(folder)).expect("a folder");
        }
        for file in
            ["six.py", "fast.cpython-311-x86_64-linux-gnu.so", "distutils-precedence.pth", "readme.txt"]
        {
            std::fs::write(site.join(file), "").expect("a file");
        }
        let packages: Vec<PackageSpec> =
            ["scikit-learn>=1", "a-b"].map(|text| text.parse().expect("a package")).into();
        let modules = importable_modules(Some(environment.path()), &packages);
        assert_eq!(modules.into_iter().collect::<Vec<_>>(), ["a_b", "fast", "pandas", "six", "sklearn"]);
        assert_eq!(importable_modules(None, &packages).len(), 2);
    }
}
