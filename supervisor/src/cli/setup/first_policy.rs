//! Writes a first policy from the tools of the servers for `lockhouse setup`.

use lockhouse_config::{self as config, ConfigError, Files};
use lockhouse_policies::{ServerOffer, render_template};

use super::journal::{Change, Journal};
use crate::cli::policy::{init, policy_file};

/// Writes the policy. Does nothing if no server has any tools.
pub(super) fn write(files: &Files, offers: &[ServerOffer], journal: &mut Journal) -> Result<(), ConfigError> {
    if offers.is_empty() {
        println!(
            "no policy was written, since no server has any tools yet: run `lockhouse policy init` later"
        );
        return Ok(());
    }
    let path = config::policy_path(files)?;
    let unwritable = |source| ConfigError::Unwritable { path: path.clone(), source };
    let text = render_template(offers);
    journal.record(&path, None, &text, Change::Policy).map_err(unwritable)?;
    policy_file::write(&path, &text, false).map_err(unwritable)?;
    init::report(&path, offers);
    Ok(())
}
