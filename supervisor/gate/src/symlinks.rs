//! Resolves the symbolic links in path arguments of calls, in the account that the called server has.

use lockhouse_policies::{Call, Policy, ResolvedPaths};

use super::{Gate, RunContext};

impl Gate {
    /// Resolves the symbolic links of the paths in the arguments of a call that the policy asks for. The result omits paths
    /// that cannot be resolved, and is empty if resolving takes too long.
    pub(super) async fn resolve_links(
        &self,
        run: &RunContext,
        policy: &Policy,
        call: &Call,
    ) -> ResolvedPaths {
        let is_of_person = self.is_files_server(&call.server) || self.upstreams.runs_as_person(&call.server);
        self.files
            .resolve_links(&run.usage.slow_check_slot, policy.paths_to_resolve(call), is_of_person)
            .await
    }
}
