//! The choice between an engine of one AI client and a shared one.

use serde::Deserialize;

/// Whether a `lockhouse serve` over standard input and output has an engine of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EngineSharing {
    #[default]
    Own,
    Shared,
}
