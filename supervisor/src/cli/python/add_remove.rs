//! `lockhouse python add` and `lockhouse python remove`.

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_audit::{ChangeTarget, Channel};
use lockhouse_config::{ConfigEdit, Files, PackageSpec, PreparedEdit, Settings, recorded_config_path};

use super::environment::ManagedDirectory;
use super::lock::{Built, Versions, build, names, record_packages};
use super::unusable::refuse_unusable;
use super::{PythonError, load, parse_packages};
use crate::cli::command_audit_log::FileChange;
use crate::cli::package_costs::PackageCosts;
use crate::cli::reload::reload_all_and_print;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Packages: names, possibly with versions, such as pandas or "pandas>=2,<4"
    #[arg(required = true, value_name = "PACKAGE")]
    packages: Vec<String>,
}

/// Runs `lockhouse python add`.
pub(super) async fn add(files: &Files, arguments: &Arguments) -> Result<ExitCode, PythonError> {
    let new = parse_packages(&arguments.packages)?;
    new.iter().try_for_each(refuse_unusable)?;
    let settings = load(files)?;
    let kept =
        settings.python_packages().iter().filter(|known| !new.iter().any(|new| new.is_same_package(known)));
    let packages: Vec<PackageSpec> = kept.chain(&new).cloned().collect();
    let directory = ManagedDirectory::open(&settings)?;
    let action = format!("add {}", names(&new));
    change(files, (&settings, &directory), &packages, &action).await?.print();
    println!("added {}: programs can import them now", names(&new));
    reload_all_and_print().await;
    Ok(ExitCode::SUCCESS)
}

/// Runs `lockhouse python remove`.
pub(super) async fn remove(files: &Files, arguments: &Arguments) -> Result<ExitCode, PythonError> {
    let removed = parse_packages(&arguments.packages)?;
    let settings = load(files)?;
    let configured = settings.python_packages();
    let is_removed = |package: &PackageSpec| removed.iter().any(|removed| removed.is_same_package(package));
    if let Some(unknown) =
        removed.iter().find(|name| !configured.iter().any(|known| known.is_same_package(name)))
    {
        return Err(PythonError::NotConfigured(unknown.to_string()));
    }
    let packages: Vec<PackageSpec> =
        configured.iter().filter(|package| !is_removed(package)).cloned().collect();
    let directory = ManagedDirectory::open(&settings)?;
    let action = format!("remove {}", names(&removed));
    change(files, (&settings, &directory), &packages, &action).await?;
    println!("removed {}", names(&removed));
    reload_all_and_print().await;
    Ok(ExitCode::SUCCESS)
}

/// Builds the environment with the packages, and changes the configuration with it. If one of them fails, neither is
/// changed.
async fn change(
    files: &Files,
    (settings, directory): (&Settings, &ManagedDirectory),
    packages: &[PackageSpec],
    action: &str,
) -> Result<PackageCosts, PythonError> {
    // A configuration that cannot be changed is noticed before minutes of work.
    prepare(files, packages)?;
    let built = build(files, settings, directory, packages, Versions::KeepLocked).await?;
    let (edit, path, text) = prepare(files, packages)?;
    let Built { environment, lock_text, costs } = built;
    record_packages(files, directory, (action, &lock_text), || {
        directory.replace_current(environment, &lock_text)?;
        let configuration = FileChange {
            target: ChangeTarget::Configuration,
            path: recorded_config_path(files),
            action: &format!("python {action}"),
            through: Channel::Command,
            text: Some(&text),
            only_restricts: false,
        };
        configuration.make(files, || edit.commit()).map_err(PythonError::from_change)
    })?;
    println!("changed packages of [python] in {}", path.display());
    Ok(costs)
}

/// Returns the checked edit of the configuration, its path and its text.
fn prepare(files: &Files, packages: &[PackageSpec]) -> Result<(PreparedEdit, PathBuf, String), PythonError> {
    let mut edit = ConfigEdit::open(files)?;
    edit.set_python_packages(packages);
    let (path, text) = (edit.path().to_owned(), edit.text());
    Ok((edit.prepare(files)?, path, text))
}
