//! Connects once to newly configured servers, so that their tools are cached. An AI client that later starts
//! Lockhouse then gets the tools without waiting for the servers.

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_config::{Files, Settings};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, Upstreams, cached_tools};

use super::connection_progress;
use crate::cli::terminal::sanitize;
use crate::cli::unavailable_servers::unavailable_reason;

/// The maximum time for all first connections together.
const CONNECT_MAX: Duration = Duration::from_secs(30);

/// Connects to servers whose tools are not cached yet: to those in `names`, or to all if `names` is `None`. Prints
/// for each server the number of its tools, or why the server is not connected.
pub(in crate::cli) async fn cache_tools(files: &Files, names: Option<&[String]>) {
    // A fault of the configuration was reported by the command that wrote it.
    let Ok(settings) = Settings::load(files) else { return };
    let (places, servers) = (settings.engine.places, settings.engine.servers);
    let is_new = |name: &ServerName, server: &ServerDefinition| {
        names.is_none_or(|names| names.iter().any(|new| new == name.as_str()))
            && cached_tools(name, server, &places).is_none()
    };
    let new: BTreeMap<_, _> = servers.into_iter().filter(|(name, server)| is_new(name, server)).collect();
    if new.is_empty() {
        return;
    }
    let upstreams = Upstreams::connect(new, &places);
    let _ = tokio::time::timeout(CONNECT_MAX, connection_progress::connect_all(&upstreams)).await;
    for (name, connection) in upstreams.iter() {
        match connection.known_catalogue() {
            Some(catalogue) => println!("{name}: connected, {} tools", catalogue.tools.len()),
            None => {
                let reason =
                    unavailable_reason(connection).unwrap_or_else(|| "it did not answer in time".into());
                println!("{name}: not connected now: {}", sanitize(&reason));
            }
        }
    }
    upstreams.close().await;
}
