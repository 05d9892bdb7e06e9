//! The gate, through which every request of a worker or AI client to an upstream server passes. No other crate calls
//! the policy's `decide`.
//!
//! [`worker_requests`] handles the requests of workers, [`direct_calls`] those of AI clients. Calls of upstream servers
//! go through the steps in [`call`]; [`tool_discovery`] answers questions about servers and tools.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

mod approvals;
mod argument_names;
#[cfg(test)]
mod audit_cost;
mod call;
mod catalogue_description;
mod denials;
mod destination;
mod direct_calls;
mod effective_policy;
mod failures;
mod limits;
mod listing_filter;
mod mentioned_tools;
mod planned_calls;
mod requester;
pub mod results;
mod schema;
mod scope;
mod skill_requests;
pub mod skills;
mod symlinks;
mod tool_discovery;
mod tool_list_cache;
mod tool_request;
mod tool_search;
mod worker_requests;

use std::sync::Arc;

use lockhouse_audit::Audit;
use lockhouse_base::principal::Principal;
use lockhouse_policies::Policy;
use lockhouse_upstream::Upstreams;

pub use approvals::{
    Approval, ApprovalQuestion, ApprovalSettings, ApproverAnswer, ApproverKind, Approvers,
    Decision as ApproverDecision, ExecutionApprovals, FromApprover, FromSupervisor, PolicyFile, Watcher,
    WatcherKind, policy_text,
};
pub use direct_calls::Entries;
pub use limits::Usage;
pub use requester::Requester;
pub use scope::{Scope, ScopeError, grant_error};
pub use symlinks::resolve_paths;
pub use tool_discovery::{effect_label, unconditional_effect};
pub use tool_request::{CallRecord, ToolRequest};
pub use tool_search::{Search, SearchResult};

use effective_policy::EffectivePolicy;
use limits::Limiter;
use results::Results;
use schema::SchemaCache;
use skills::Skills;
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
    /// The counters of the policy's rate limits.
    limiter: Limiter,
    schemas: Arc<SchemaCache>,
    results: Arc<Results>,
    /// Maximum number of bytes of a reply to a worker. A request whose reply is longer fails.
    reply_bytes_max: usize,
    tool_lists: ToolListCache,
}

impl Gate {
    pub fn new(
        policy: Policy,
        audit: Arc<Audit>,
        upstreams: Upstreams,
        skills: Option<Arc<Skills>>,
        results: Arc<Results>,
        reply_bytes_max: usize,
    ) -> Self {
        let (policy, limiter, schemas) = (EffectivePolicy::new(policy), Limiter::default(), Arc::default());
        Self {
            policy,
            audit,
            upstreams,
            skills,
            limiter,
            schemas,
            results,
            reply_bytes_max,
            tool_lists: ToolListCache::default(),
        }
    }

    /// Returns a gate for a new policy and new upstream servers, with the same audit log and rate counters. The new
    /// policy also restricts executions that still use the old gate.
    pub fn with_policy_and_servers(&self, policy: Policy, upstreams: Upstreams) -> Self {
        Self {
            policy: self.policy.replace_with(policy),
            audit: self.audit.clone(),
            upstreams,
            skills: self.skills.clone(),
            limiter: self.limiter.clone(),
            schemas: self.schemas.clone(),
            results: self.results.clone(),
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
    /// programs can import, restricted to those that the client's token grants. The policy is not applied.
    pub fn scope_for(&self, principal: &Principal) -> Scope {
        let all = Scope::all(self.code_servers());
        match principal.only() {
            Some(only) => all.restricted_to_grant(only),
            None => all,
        }
    }
}
