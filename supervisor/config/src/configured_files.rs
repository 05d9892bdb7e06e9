//! The files whose changes the audit log records: the configuration, the policy, the files of `--servers`, and the
//! administrator's requirements with the policies that they name.

use std::path::PathBuf;

use lockhouse_audit::{ChangeTarget, ConfiguredFile};
use lockhouse_base::directories;

use super::files::Files;
use super::requirements::{self, Requirements};
use super::search_paths;

/// Returns the files with these options and requirements, whether they exist or not. A path that was given is made absolute.
pub(super) fn configured_files(files: &Files, requirements: &Requirements) -> Vec<ConfiguredFile> {
    let own = [
        (ChangeTarget::Configuration, &files.config, "config.toml"),
        (ChangeTarget::Policy, &files.policy, "policy.toml"),
    ];
    let own = own.into_iter().flat_map(|(target, named, name)| {
        let paths = match named {
            Some(named) => vec![named.clone()],
            None => search_paths::config_candidates(name),
        };
        paths.into_iter().map(move |path| (target, path))
    });
    let servers = files.servers.iter().map(|path| (ChangeTarget::Configuration, path.clone()));
    let required = requirements::paths().into_iter().chain(requirements.named_files());
    let mut seen: Vec<ConfiguredFile> = Vec::new();
    for (target, path) in own.chain(servers).chain(required.map(|path| (ChangeTarget::Requirements, path))) {
        let path = std::path::absolute(&path).unwrap_or(path);
        if !seen.iter().any(|known| known.path == path) {
            seen.push(ConfiguredFile { target, path });
        }
    }
    seen
}

/// Returns the path under which a change of the configuration file is recorded: the one of `--config`, or else the user's
/// own one.
pub fn recorded_config_path(files: &Files) -> PathBuf {
    let own = || directories::configuration().map(|directory| directory.join("config.toml"));
    let path = files.config.clone().or_else(own).unwrap_or_default();
    std::path::absolute(&path).unwrap_or(path)
}
