//! Resolves the symbolic links in path arguments of calls, within a time limit.

use std::time::Duration;

use lockhouse_host_files::resolve_paths;
use lockhouse_policies::ResolvedPaths;

use super::schema::{BlockingSlot, run_blocking};

/// Maximum time for resolving the symbolic links of a call's paths, since a file system may be remote or may hang.
/// Bound: calls and arguments.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Resolves the symbolic links of paths on a blocking thread, after waiting for `slot`. The result omits paths
/// that cannot be resolved, and is empty if resolving takes longer than [`RESOLVE_TIMEOUT`].
pub(super) async fn resolve_in_background(paths: Vec<String>, slot: &BlockingSlot) -> ResolvedPaths {
    if paths.is_empty() {
        return ResolvedPaths::new();
    }
    run_blocking(slot, RESOLVE_TIMEOUT, move || resolve_paths(paths)).await.unwrap_or_default()
}
