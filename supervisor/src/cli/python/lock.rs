//! `lockhouse python lock`, and the build of a new environment for all subcommands.

use std::process::ExitCode;

use lockhouse_audit::{ChangeTarget, Channel};
use lockhouse_config::{Files, PackageSpec, Settings};

use super::environment::{EnvironmentError, ManagedDirectory, NewEnvironment};
use super::installer::{Installer, Resolution};
use super::{PythonError, import_test, load, lock_file, print_step};
use crate::cli::command_audit_log::FileChange;
use crate::cli::package_costs::PackageCosts;
use crate::cli::terminal::sanitize;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Select the newest versions instead of those of the lock file
    #[arg(long)]
    upgrade: bool,
}

/// Which versions an environment gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    /// Exactly those of the lock file.
    Locked,
    /// Those of the lock file for packages that are in it, and the newest for others.
    KeepLocked,
    Newest,
}

/// Runs `lockhouse python lock`.
pub(super) async fn lock(files: &Files, arguments: &Arguments) -> Result<ExitCode, PythonError> {
    let settings = load(files)?;
    let directory = ManagedDirectory::open(&settings)?;
    let packages = settings.python_packages().to_vec();
    let versions = if arguments.upgrade { Versions::Newest } else { Versions::Locked };
    let built = build(files, &settings, &directory, &packages, versions).await?;
    let Built { environment, lock_text, costs } = built;
    let action = if arguments.upgrade { "lock --upgrade" } else { "lock" };
    record_packages(files, &directory, (action, &lock_text), || {
        Ok(directory.replace_current(environment, &lock_text)?)
    })?;
    costs.print();
    super::super::reload::reload_all_and_print().await;
    Ok(ExitCode::SUCCESS)
}

/// A new environment that works. It is deleted unless it replaces the current one.
pub(super) struct Built {
    pub(super) environment: NewEnvironment,
    pub(super) lock_text: String,
    pub(super) costs: PackageCosts,
}

/// Builds a new environment with the packages, and tests it in the sandbox.
pub(super) async fn build(
    files: &Files,
    settings: &Settings,
    directory: &ManagedDirectory,
    packages: &[PackageSpec],
    versions: Versions,
) -> Result<Built, PythonError> {
    let environment = directory.new_environment();
    let interpreter = settings.python_interpreter();
    let interpreter = interpreter.map_err(|error| EnvironmentError::Interpreter(error.to_string()))?;
    let installer = Installer::new(interpreter, environment.path.clone());
    print_step(&format!("creating {} with {}", environment.path.display(), installer.name()));
    installer.create().await?;
    let locked = std::fs::read_to_string(directory.lock_file()).unwrap_or_default();
    let pins = lock_file::pins(&locked);
    let is_locked = |package: &PackageSpec| {
        pins.iter().any(|(name, _)| name.parse().is_ok_and(|name: PackageSpec| name.is_same_package(package)))
    };
    let lock_text = if versions == Versions::Locked && packages.iter().all(is_locked) {
        locked
    } else {
        print_step(&format!("selecting versions of {}", names(packages)));
        let pins = pins.iter().map(|(name, version)| format!("{name}=={version}"));
        let pins: Vec<String> = if versions == Versions::Newest { Vec::new() } else { pins.collect() };
        let Resolution { lock_text, indexes } = installer.resolve(packages, &pins).await?;
        if !indexes.is_empty() {
            eprintln!("packages come from {}", sanitize(&indexes.join(", ")));
        }
        lock_text
    };
    print_step(&format!("installing {} packages", lock_file::pins(&lock_text).len()));
    installer.install(&lock_text).await?;
    print_step("importing the packages in a sandboxed worker");
    let costs = import_test::test(files, packages, &environment.path).await?;
    Ok(Built { environment, lock_text, costs })
}

/// Records a change of the installed packages, whose lock file gets this text, and makes it with `make`.
pub(super) fn record_packages(
    files: &Files,
    directory: &ManagedDirectory,
    (action, lock_text): (&str, &str),
    make: impl FnOnce() -> Result<(), PythonError>,
) -> Result<(), PythonError> {
    let change = FileChange {
        target: ChangeTarget::Packages,
        path: directory.lock_file(),
        action,
        through: Channel::Command,
        text: Some(lock_text),
        only_restricts: false,
    };
    change.make(files, make).map_err(PythonError::from_change)
}

pub(super) fn names(packages: &[PackageSpec]) -> String {
    packages.iter().map(PackageSpec::as_str).collect::<Vec<_>>().join(", ")
}
