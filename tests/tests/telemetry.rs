//! Metrics, log, traces, and `lockhouse status`.

mod log;
mod metrics;
mod status;
mod traces;

/// Configuration of a daemon without authentication.
const OPEN: &str = "[http]\nauth = \"none\"\n";
