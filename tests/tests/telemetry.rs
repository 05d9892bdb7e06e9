//! Tests of what an operator observes of a daemon: metrics, log, traces, and `lockhouse status`.

mod log;
mod metrics;
mod status;
mod traces;

/// A daemon configuration without authentication.
const OPEN: &str = "[http]\nauth = \"none\"\n";
