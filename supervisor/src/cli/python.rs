//! `lockhouse python`: installs the Python packages that programs can import, into a virtual environment that only this
//! command changes.

mod add_remove;
mod environment;
mod import_test;
mod installer;
mod list;
mod lock;
mod lock_file;
mod package_index;
mod unusable;
mod uv_settings;

use std::process::ExitCode;

use lockhouse_config::{ConfigError, Files, InvalidPackage, PackageSpec, Settings};

use super::command_audit_log::{ChangeError, RecordError};
use super::{UNAVAILABLE, USAGE, print_config_error, print_error};
use environment::EnvironmentError;
use installer::InstallError;

/// Subcommands of `lockhouse python`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Install packages for programs, with what they require, and add them to the configuration
    Add(add_remove::Arguments),
    /// Remove packages from the configuration, and uninstall them with what only they required
    Remove(add_remove::Arguments),
    /// List the configured packages with their installed versions
    List(list::Arguments),
    /// Install exactly the versions of the lock file again, for example after an update of Python
    Lock(lock::Arguments),
    /// Check that the environment is as the lock file says, and import every package in a sandboxed worker
    Check(list::CheckArguments),
}

/// Why a subcommand failed.
#[derive(Debug, thiserror::Error)]
enum PythonError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Package(#[from] InvalidPackage),
    #[error("{name} cannot be used by programs: {reason}")]
    Unusable { name: String, reason: &'static str },
    #[error("{0} is not a configured package; `lockhouse python list` lists them")]
    NotConfigured(String),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error("nothing was changed, because the audit log cannot record it: {0}")]
    Unrecorded(RecordError),
    #[error("the packages were installed, but cannot be used, so nothing was changed: {0}")]
    Import(String),
}

impl PythonError {
    /// Returns the error of a change that was not made.
    fn from_change<E: Into<Self>>(error: ChangeError<E>) -> Self {
        match error {
            ChangeError::Failed(error) => error.into(),
            ChangeError::Unrecorded(error) => Self::Unrecorded(error),
        }
    }
}

/// Runs a subcommand of `lockhouse python` and returns its exit status.
pub(super) async fn python(files: &Files, command: Command) -> ExitCode {
    let result = match command {
        Command::Add(arguments) => add_remove::add(files, &arguments).await,
        Command::Remove(arguments) => add_remove::remove(files, &arguments).await,
        Command::List(arguments) => list::list(files, &arguments),
        Command::Lock(arguments) => lock::lock(files, &arguments).await,
        Command::Check(arguments) => list::check(files, &arguments).await,
    };
    result.unwrap_or_else(|error| match error {
        PythonError::Config(error) => print_config_error(&error),
        PythonError::Install(_)
        | PythonError::Import(_)
        | PythonError::Environment(_)
        | PythonError::Unrecorded(_) => print_error(&error, UNAVAILABLE),
        _ => print_error(&error, USAGE),
    })
}

/// Parses the names of packages on the command line, and rejects those that no program can use.
fn parse_packages(names: &[String]) -> Result<Vec<PackageSpec>, PythonError> {
    let mut packages: Vec<PackageSpec> = Vec::new();
    for name in names {
        let package: PackageSpec = name.parse()?;
        if !packages.iter().any(|other| other.is_same_package(&package)) {
            packages.push(package);
        }
    }
    Ok(packages)
}

fn load(files: &Files) -> Result<Settings, PythonError> {
    Ok(Settings::load(files)?)
}

/// Prints one step of a command that takes a while.
fn print_step(words: &str) {
    eprintln!("{words} …");
}
