//! The gate, through which every request of a worker or AI client to an upstream server passes. No other crate calls
//! the policy's `decide`.
//!
//! [`worker_requests`] handles the requests of workers, [`direct_calls`] those of AI clients. Calls of upstream servers
//! go through the steps in [`call`]; [`tool_discovery`] answers questions about servers and tools.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

mod argument_names;
#[cfg(test)]
mod audit_cost;
mod call;
mod catalogue_description;
mod code_server;
mod denials;
mod destination;
mod direct_calls;
mod effective_policy;
mod failures;
mod file_requests;
mod job_files;
mod limits;
mod listing_filter;
mod mentioned_tools;
mod planned_calls;
mod run_context;
mod run_files;
mod schema;
mod scope;
mod skill_requests;
mod symlinks;
mod text_of_arguments;
mod tool_discovery;
mod tool_list_cache;
mod tool_request;
mod tool_search;
mod transfers;
mod worker_requests;

use std::sync::Arc;

use lockhouse_audit::Audit;
use lockhouse_base::principal::Principal;
use lockhouse_policies::Policy;
use lockhouse_upstream::Upstreams;

pub use direct_calls::Entries;
pub use limits::Usage;
pub use run_context::RunContext;
pub use run_files::{GivenFile, LeftOutFile, ReturnedFiles, RunFiles};
pub use scope::{Scope, ScopeError, grant_error};
pub use tool_discovery::{effect_label, unconditional_effect};
pub use tool_request::{CallRecord, ToolRequest};
pub use tool_search::{Search, SearchResult};

use effective_policy::EffectivePolicy;
use limits::Limiter;
use lockhouse_host_files::{HostFileSettings, HostFiles};
use lockhouse_stores::result_files::ResultFiles;
use lockhouse_stores::results::Results;
use lockhouse_stores::skills::Skills;
use schema::SchemaCache;
use tool_list_cache::ToolListCache;

/// The gate: makes calls of upstream servers if the policy permits them, and writes the audit records of calls and
/// denials. A reload of the configuration creates a new gate.
#[derive(Debug)]
pub struct Gate {
    policy: EffectivePolicy,
    audit: Arc<Audit>,
    upstreams: Upstreams,
    /// The saved skills of all AI clients; `None` if skills are turned off.
    skills: Option<Arc<Skills>>,
    /// The built-in server `files`.
    files: HostFiles,
    /// The counters of the policy's rate limits.
    limiter: Limiter,
    schemas: Arc<SchemaCache>,
    results: Arc<Results>,
    result_files: ResultFiles,
    /// Maximum number of bytes of a reply to a worker. A request whose reply is longer fails.
    reply_bytes_max: usize,
    tool_lists: ToolListCache,
}

/// The parts of a gate that a reload of the configuration does not replace.
#[derive(Debug)]
pub struct GateStores {
    pub audit: Arc<Audit>,
    /// `None` if skills are turned off.
    pub skills: Option<Arc<Skills>>,
    pub results: Arc<Results>,
    pub result_files: ResultFiles,
}

impl Gate {
    /// Creates the gate of a new process. `files` are the settings of the built-in server `files`.
    pub fn new(
        policy: Policy,
        upstreams: Upstreams,
        files: HostFileSettings,
        stores: GateStores,
        reply_bytes_max: usize,
    ) -> Self {
        let (policy, limiter, schemas) = (EffectivePolicy::new(policy), Limiter::default(), Arc::default());
        let GateStores { audit, skills, results, result_files } = stores;
        Self {
            policy,
            audit,
            upstreams,
            skills,
            files: HostFiles::new(files),
            limiter,
            schemas,
            results,
            result_files,
            reply_bytes_max,
            tool_lists: ToolListCache::default(),
        }
    }

    /// Returns a gate for a new policy, new upstream servers and new settings of the server `files`, with the same audit
    /// log and rate counters. The new policy also restricts executions that still use the old gate.
    pub fn reconfigured(&self, policy: Policy, upstreams: Upstreams, files: HostFileSettings) -> Self {
        Self {
            policy: self.policy.replace_with(policy),
            audit: self.audit.clone(),
            upstreams,
            skills: self.skills.clone(),
            files: self.files.reconfigured(files),
            limiter: self.limiter.clone(),
            schemas: self.schemas.clone(),
            results: self.results.clone(),
            result_files: self.result_files.clone(),
            reply_bytes_max: self.reply_bytes_max,
            tool_lists: ToolListCache::default(),
        }
    }

    pub fn audit(&self) -> Arc<Audit> {
        self.audit.clone()
    }

    /// Returns the SHA-256 digest of the policy files with which this gate was created; `None` if there are no policy
    /// files.
    pub fn policy_digest(&self) -> Option<&str> {
        self.policy.digest()
    }

    /// Returns the policy that decides about calls of executions that use this gate: the policy with which the
    /// gate was created, restricted by the newest policy.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.current()
    }

    pub fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// Returns the upstream servers and tools that programs of an AI client may know of: all servers that
    /// programs can import, restricted to those that the client's token grants. The policy is not applied, except for the
    /// built-in server `files`: a client of a shared process may know of it only if the policy names the client for it.
    pub fn scope_for(&self, principal: &Principal) -> Scope {
        let mut servers = self.code_servers();
        if principal.owner().is_limited()
            && !self
                .policy
                .current()
                .names_client(&self.files.settings().name, principal.authenticated_client())
        {
            servers.retain(|server| !self.is_files_server(server));
        }
        let all = Scope::all(servers);
        match principal.only() {
            Some(only) => all.restricted_to_grant(only),
            None => all,
        }
    }
}
