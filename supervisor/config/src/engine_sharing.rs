//! The choice between an engine of one AI client and a shared one.

use std::time::Duration;

use lockhouse_protocol::ServerName;
use serde::Deserialize;

use super::Settings;

/// Whether a `lockhouse serve` over standard input and output has an engine of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EngineSharing {
    #[default]
    Own,
    Shared,
}

impl Settings {
    /// Whether the configuration says that `lockhouse serve` over standard input and output shares an engine with other
    /// clients.
    pub fn wants_shared_engine(&self) -> bool {
        self.document.sharing.engine == EngineSharing::Shared
    }

    /// Returns a server with `share = false`, which prevents that its engine is shared.
    pub fn unshared_server(&self) -> Option<&ServerName> {
        self.engine.servers.iter().find(|(_, server)| !server.is_shared).map(|(name, _)| name)
    }

    /// Whether clients share an engine with these settings.
    pub fn shares_engine(&self) -> bool {
        self.wants_shared_engine() && self.unshared_server().is_none()
    }

    /// Returns how long an engine that clients share keeps running without clients.
    pub fn engine_idle_time(&self) -> Duration {
        Duration::from_secs_f64(self.document.sharing.idle_seconds)
    }
}
