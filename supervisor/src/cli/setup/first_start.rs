//! Starts each server once for `lockhouse setup`, shows the result, and writes a first policy from the servers' tools.

use std::time::Duration;

use lockhouse_policies::{Policy, render_template};
use lockhouse_upstream::Upstreams;

use super::journal::{Change, Journal};
use crate::cli::policy::{init, policy_file};
use crate::cli::server::connect_all;
use crate::cli::unavailable_servers::unavailable_reason;
use crate::cli::{start_with, table};
use crate::config::{self, ConfigError, Files, Settings};

/// The maximum time for the start of all servers together.
const START_MAX: Duration = Duration::from_secs(60);

/// Starts the servers, and prints a table of them. Writes a first policy if `writes_policy` is set. A server that does
/// not start is no error.
pub(super) async fn test_servers(
    files: &Files,
    writes_policy: bool,
    journal: &mut Journal,
) -> Result<(), ConfigError> {
    let settings = Settings::load(files)?;
    if settings.engine.servers.is_empty() {
        return Ok(());
    }
    // The reason was printed. The entries in the clients' files do not depend on this test.
    let Ok(supervisor) = start_with(settings.engine, Policy::empty(), &[]) else { return Ok(()) };
    let gate = supervisor.gate();
    let _ = tokio::time::timeout(START_MAX, connect_all(gate.upstreams())).await;
    println!("\n{}\n", table::render(&["server", "tools", "time", "error"], &rows(gate.upstreams())));
    let offers = init::offers(&gate);
    supervisor.close().await;
    if !writes_policy {
        return Ok(());
    }
    if offers.is_empty() {
        println!(
            "no policy was written, since no server has any tools yet: run `lockhouse policy init` later"
        );
        return Ok(());
    }
    let path = config::policy_path(files)?;
    let unwritable = |source| ConfigError::Unwritable { path: path.clone(), source };
    let text = render_template(&offers);
    journal.record(&path, None, &text, Change::Policy).map_err(unwritable)?;
    policy_file::write(&path, &text, false).map_err(unwritable)?;
    init::report(&path, &offers);
    Ok(())
}

fn rows(upstreams: &Upstreams) -> Vec<Vec<String>> {
    let servers = upstreams.iter().map(|(name, connection)| {
        let tools = connection.known_catalogue().map(|catalogue| catalogue.tools.len());
        let reason = unavailable_reason(connection);
        let took = connection.status().start_time.filter(|_| reason.is_none());
        vec![
            name.to_string(),
            tools.filter(|_| reason.is_none()).map_or_else(String::new, |tools| tools.to_string()),
            took.map_or_else(String::new, |took| format!("{} ms", took.as_millis())),
            reason.unwrap_or_default().replace('\n', " "),
        ]
    });
    servers.collect()
}
