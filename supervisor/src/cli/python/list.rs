//! `lockhouse python list` and `lockhouse python check`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockhouse_config::{Files, PackageSpec, environment_in_use, managed_directory};
use serde_json::json;

use super::{PythonError, import_test, load, lock_file};
use crate::cli::{UNAVAILABLE, table};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CheckArguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// A package that is installed in an environment.
struct Installed {
    package: PackageSpec,
    version: String,
}

/// Runs `lockhouse python list`.
pub(super) fn list(files: &Files, arguments: &Arguments) -> Result<ExitCode, PythonError> {
    let settings = load(files)?;
    let environment = environment_in_use(settings.python_environment()).unwrap_or_default();
    let installed = installed(&environment);
    let version_of = |package: &PackageSpec| {
        let found = installed.iter().find(|installed| installed.package.is_same_package(package));
        found.map(|installed| installed.version.clone())
    };
    let packages = settings.python_packages();
    if arguments.json {
        let row =
            |package: &PackageSpec| json!({"package": package.as_str(), "version": version_of(package)});
        let rows: Vec<_> = packages.iter().map(row).collect();
        println!("{:#}", json!({"environment": environment.display().to_string(), "packages": rows}));
    } else if packages.is_empty() {
        println!("no packages are configured; `lockhouse python add NAME` adds one");
    } else {
        let row = |package: &PackageSpec| {
            vec![package.to_string(), version_of(package).unwrap_or_else(|| "not installed".into())]
        };
        println!("{}", table::render(&["package", "version"], &packages.iter().map(row).collect::<Vec<_>>()));
        println!("\n{} packages in {}", installed.len(), environment.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `lockhouse python check`.
pub(super) async fn check(files: &Files, arguments: &CheckArguments) -> Result<ExitCode, PythonError> {
    let settings = load(files)?;
    let environment = environment_in_use(settings.python_environment()).unwrap_or_default();
    let is_managed = settings.python_environment().is_none();
    let differences = if is_managed { differences(&environment) } else { Vec::new() };
    let costs = import_test::test(files, settings.python_packages(), &environment).await?;
    if arguments.json {
        println!("{:#}", json!({"differences": differences, "costs": costs.to_json()}));
    } else {
        costs.print();
        for difference in &differences {
            eprintln!("lockhouse: {difference}");
        }
        if !differences.is_empty() {
            eprintln!("lockhouse: `lockhouse python lock` installs the versions of the lock file again");
        }
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(UNAVAILABLE) })
}

/// Compares the installed packages with the lock file. Returns a sentence for each difference.
fn differences(environment: &Path) -> Vec<String> {
    let lock = managed_directory().map(|directory| directory.join("requirements.lock")).unwrap_or_default();
    let locked = std::fs::read_to_string(&lock).unwrap_or_default();
    let locked: Vec<Installed> = lock_file::pins(&locked).into_iter().filter_map(Installed::new).collect();
    let installed = installed(environment);
    let missing = locked.iter().filter_map(|locked| {
        let found = installed.iter().find(|installed| installed.package.is_same_package(&locked.package));
        let (name, version) = (&locked.package, &locked.version);
        match found {
            Some(found) if found.version == *version => None,
            Some(found) => Some(format!(
                "{name} is {} in the environment, and {version} in the lock file",
                found.version
            )),
            None => Some(format!("{name} {version} of the lock file is not installed")),
        }
    });
    let is_locked =
        |package: &PackageSpec| locked.iter().any(|locked| locked.package.is_same_package(package));
    let installer =
        |package: &PackageSpec| matches!(package.normalized_name().as_str(), "pip" | "setuptools" | "wheel");
    let unlocked =
        installed.iter().filter(|installed| !is_locked(&installed.package) && !installer(&installed.package));
    let unlocked = unlocked.map(|it| format!("{} {} is not in the lock file", it.package, it.version));
    missing.chain(unlocked).collect()
}

impl Installed {
    fn new((name, version): (String, String)) -> Option<Self> {
        Some(Self { package: name.parse().ok()?, version })
    }
}

/// Lists the packages in an environment by their folders `NAME-VERSION.dist-info`.
fn installed(environment: &Path) -> Vec<Installed> {
    let folders = std::fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    let folders: Vec<PathBuf> = folders.map(|entry| entry.path().join("site-packages")).collect();
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let package = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (name, version) = name.strip_suffix(".dist-info")?.rsplit_once('-')?;
        Installed::new((name.to_owned(), version.to_owned()))
    };
    entries.filter_map(package).collect()
}
