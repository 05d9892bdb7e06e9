//! The lifecycle of the engine, as fronts learn of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The state of the engine's lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LifecycleState {
    /// The engine accepts requests.
    Serving,
    /// The engine drains before it ends: open exchanges may still end, and the front must send no request that begins
    /// new work. After `time_left`, the engine cancels the runs that have not ended.
    Draining { time_left: Duration },
    /// The engine ends: it serves no request any more.
    Closing,
}
