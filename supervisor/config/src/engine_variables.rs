//! The environment variables of an engine that AI clients share: those whose values must be equal for clients to share it,
//! and those that it gets in addition. It gets no other variable.

use std::ffi::OsString;

/// Environment variables that an engine or its upstream servers depend on. A shared engine gets them, and their values
/// are part of the setup.
const COMPARED_VARIABLES: [&str; 25] = [
    "ALL_PROXY",
    "CACHE_DIRECTORY",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LOCKHOUSE_REQUIREMENTS",
    "LOGNAME",
    "LOGS_DIRECTORY",
    "NO_PROXY",
    SEARCH_PATH,
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "STATE_DIRECTORY",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "all_proxy",
    "https_proxy",
    "http_proxy",
    "no_proxy",
];
/// The variable that is compared without the directories that AI clients put into it.
pub(super) const SEARCH_PATH: &str = "PATH";
/// The beginning of the names of the variables that configure the export of traces. They are compared too.
const COMPARED_PREFIX: &str = "OTEL_";
/// Environment variables that a shared engine gets, but that are not part of the setup: they only say how values are
/// found, and the values themselves are part of it.
const PASSED_VARIABLES: [&str; 5] = [
    "CREDENTIALS_DIRECTORY",
    "DBUS_SESSION_BUS_ADDRESS",
    "LOCKHOUSE_LOG",
    "RUST_BACKTRACE",
    "XDG_RUNTIME_DIR",
];

/// Returns the variables of this process that are compared, sorted by name.
pub(super) fn compared_variables() -> Vec<(OsString, OsString)> {
    variables(|name| COMPARED_VARIABLES.contains(&name) || name.starts_with(COMPARED_PREFIX))
}

/// Returns the variables of this process that an engine gets without a comparison, sorted by name: those of every engine,
/// and those that the configuration uses, as `is_used` tells.
pub(super) fn passed_variables(is_used: impl Fn(&str) -> bool) -> Vec<(OsString, OsString)> {
    variables(|name| PASSED_VARIABLES.contains(&name) || is_used(name))
}

/// Returns the environment variables of this process whose names are selected, sorted by name.
fn variables(is_selected: impl Fn(&str) -> bool) -> Vec<(OsString, OsString)> {
    let selected = |(name, _): &(OsString, OsString)| name.to_str().is_some_and(&is_selected);
    let mut variables: Vec<_> = std::env::vars_os().filter(selected).collect();
    variables.sort();
    variables
}
