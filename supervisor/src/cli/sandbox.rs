//! What the sandbox profile `default` permits a server, as commands that add servers show it.

use std::path::PathBuf;

use lockhouse_config::Environment;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Endpoint, KernelGap, ServerDefinition, StoragePaths, kernel_gaps, profile_paths};

use super::terminal::sanitize;

/// The maximum number of paths of a server that are shown for each permission.
const SHOWN_MAX: usize = 12;

/// Describes what the profile has in common for all servers, and what this host's kernel lacks for it.
pub(super) fn describe_profile() -> String {
    let gaps = kernel_gaps();
    let restricts_files = !gaps.iter().any(|gap| matches!(gap, KernelGap::Files(_)));
    let of_files = "a server cannot read your home directory, except language runtimes: no ~/.ssh, no credentials, no keyrings, no \
                    files of other programs. It writes only to a folder of its own, which has its caches and temporary files, and \
                    to the paths that its configuration names. It";
    let subject = if restricts_files { of_files } else { "a server" };
    let mut text = format!(
        "in the sandbox, {subject} has TCP and UDP, and no Unix sockets, no debugger and no new privileges"
    );
    for gap in gaps {
        text += &format!(". But {gap}");
    }
    text
}

/// Returns the files that the configuration of a server names, and that it cannot change in the sandbox, because they are
/// not in a folder of their own. There are none for a server without the profile.
pub(super) fn unchangeable_files(
    name: &ServerName,
    definition: &ServerDefinition,
    places: &StoragePaths,
) -> Vec<PathBuf> {
    let Endpoint::Stdio(command) = &definition.endpoint else { return Vec::new() };
    if command.confinement.as_ref().is_none_or(|confinement| confinement.profile.is_none()) {
        return Vec::new();
    }
    let home = Environment::from_process().home;
    let named = profile_paths(command, home.as_deref(), &places.sandbox_places(name, definition));
    let granted = &command.confinement.as_ref().map(|it| it.write.clone()).unwrap_or_default();
    let is_granted = |path: &PathBuf| granted.iter().any(|folder| path.starts_with(folder));
    let withheld = named.withheld.into_iter().filter(|withheld| withheld.needs_folder());
    withheld.map(|withheld| withheld.path).filter(|path| !is_granted(path)).collect()
}

/// Describes which paths the profile grants a server because its configuration names them, one line for each
/// permission. Returns `None` for a server that is not a process.
pub(super) fn describe_paths(
    name: &ServerName,
    definition: &ServerDefinition,
    places: &StoragePaths,
) -> Option<Vec<String>> {
    let Endpoint::Stdio(command) = &definition.endpoint else { return None };
    let home = Environment::from_process().home;
    let named = profile_paths(command, home.as_deref(), &places.sandbox_places(name, definition));
    let list = |paths: Vec<String>| {
        let left_out = paths.len().saturating_sub(SHOWN_MAX);
        let mut shown = paths.into_iter().take(SHOWN_MAX).collect::<Vec<_>>().join(", ");
        if left_out > 0 {
            shown += &format!(" and {left_out} more");
        }
        sanitize(&shown)
    };
    let text = |path: &PathBuf| path.display().to_string();
    let is_only_read = |path: &&PathBuf| !named.write.contains(path);
    let mut lines = Vec::new();
    let mut line = |permission: &str, paths: Vec<String>| {
        if !paths.is_empty() {
            lines.push(format!("{name}: {permission} {}", list(paths)));
        }
    };
    line("reads and writes", named.write.iter().map(text).collect());
    line("reads", named.read.iter().filter(is_only_read).map(text).collect());
    for withheld in &named.withheld {
        line("does not get", vec![format!("{}: {}", withheld.path.display(), withheld.reason)]);
    }
    if lines.is_empty() {
        lines.push(format!("{name}: its configuration names no paths"));
    }
    Some(lines)
}
