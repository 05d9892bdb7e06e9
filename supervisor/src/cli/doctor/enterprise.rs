//! `lockhouse doctor --profile enterprise`: the checklist for hosts that an administrator manages (docs/fleet.md), as checks
//! of this host and of the configuration in use.

mod host;
mod presence;
mod servers;

use lockhouse_config::{Configuration, Files};

use super::checklist::Checklist;
use super::report::Report;
use crate::cli::command_error::CommandError;

/// The name of the profile, as `--profile` has it.
pub(super) const NAME: &str = "enterprise";
/// Checks this host, of which `report` has the protections, and the configuration.
///
/// # Errors
/// If the configuration, the policy or the requirements cannot be used.
pub(super) fn examine(files: &Files, report: &Report) -> Result<Checklist, CommandError> {
    let configuration = Configuration::load(files)?;
    let mut checks = host::checks(report, &configuration.settings);
    checks.extend(servers::checks(&configuration));
    Ok(Checklist { profile: NAME, checks })
}
