//! The gate: the only path from a program or an AI client to an upstream server.
//!
//! Each call takes the same steps in one order: the server exists; it is in the scope of the execution; the policy
//! could permit the tool at all; the tool exists and is unchanged; the arguments match its parameters and schema; links
//! of its paths are resolved; the policy decides; the approval, if required; the limits; a slot at the server; the tool
//! is still the same; the decision is repeated if another policy came into force meanwhile; the record; the call. So
//! nothing is revealed about calls that could not be permitted, no approver is asked about a call that could not be
//! sent, and a rejected call is neither counted nor sent.
//!
//! # Parts
//!
//! - `call.rs` has these steps. `call/states.rs` has a type for each, constructed only from that of the previous step;
//!   `check.rs`, `decide.rs`, `recheck.rs` and `record.rs` carry them out.
//! - `worker_requests.rs` handles the requests of workers, `direct_calls.rs` those of AI clients that call without
//!   code.
//! - `argument_names.rs`, `text_of_arguments.rs` and `schema.rs` validate arguments.
//! - [`RunContext`] is on whose behalf a call is made, [`Scope`] the restriction with which the execution was started.
//!   `effective_policy.rs` selects the policy, `limits.rs` counts, and `requirements_look.rs` knows whether the
//!   administrator's requirements may have changed unnoticed.
//! - `tool_discovery.rs` and `tool_search.rs` answer questions about servers and tools; `catalogue_description.rs` is
//!   the list in the description of `run_code`.
//! - `planned_calls.rs` judges the calls of a program before it runs, `mentioned_tools.rs` finds the tools that it
//!   mentions.
//! - `destination.rs` routes a call to an upstream server or to one of Lockhouse's own servers `files` and `skills`, and
//!   `user_login.rs` to the connection of the call's user, who logs in first if necessary.
//! - `file_requests.rs` and `transfers.rs` are the files that an execution reads or writes in pieces: a file is opened
//!   once, after the gate permitted it, and its pieces are neither decided about nor recorded again. `run_files.rs` are
//!   the files that a person gave to a run and that it returned. `job_files.rs` tells the worker where it may try; it
//!   grants nothing. `file_access.rs` uses the files of the host, in this process or by a helper in the session of a
//!   person, which `file_helper.rs` asks and does not believe.
//!
//! # Invariants
//!
//! - No other crate calls the policy's `decide`.
//! - No call reaches a server without a decision and a record: [`PermittedCall`](lockhouse_policies::PermittedCall) and
//!   the record are consumed by the last step.
//! - No call waits for a limit. A call above a limit is refused, and the error of a rate says when to try again.
//! - No program learns of a tool that its scope and the policy cannot permit.
//! - No permission that is newer than a run reaches it. The policy under which an execution began and the newest one
//!   both decide, and the stricter decision holds; so a revocation takes effect at once.
//! - No step interprets a program. The worker parses it; the gate judges names and literals.
//! - No call is sent by a process that may not know the newest requirements, because it was suspended.
//! - No schema or argument uses CPU time without a bound, and no schema fetches a document.
//!
//! # Decisions
//!
//! - The steps are types, because a step that is left out then does not compile.
//! - Validation is stopped by unwinding (`schema/validation_budget.rs`). The JSON Schema library has no cancellation,
//!   and a hostile schema can make it work for very long. It reads arguments through a type that counts accesses; at
//!   the limit, it unwinds to the start of the validation, and no thread is left behind.
//! - Calls are checked before a run only where the run would fail anyway, with the functions that judge a call. The
//!   reply has the entries of the called tools, so the worker need not fetch the list of a server.
//! - Text of a server that a program passes on as an argument is sent as text where the schema permits only a string
//!   (`schema/other_forms.rs`). Digits and integers are exchanged only where the schema admits nothing else.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

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
mod file_access;
mod file_helper;
mod file_requests;
mod job_files;
mod limits;
mod listing_filter;
mod mentioned_tools;
mod planned_calls;
mod requirements_look;
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
mod user_login;
mod worker_requests;

use std::sync::Arc;
use std::time::Instant;

use lockhouse_audit::Audit;
use lockhouse_base::principal::Principal;
use lockhouse_cluster::LeasedRates;
use lockhouse_policies::Policy;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Upstreams, UserAccount};

pub use direct_calls::Entries;
pub use limits::Usage;
pub use run_context::RunContext;
pub use run_files::{GivenFile, LeftOutFile, ReturnedFiles, RunFiles};
pub use scope::{Scope, ScopeError, grant_error};
pub use tool_discovery::{effect_label, unconditional_effect};
pub use tool_request::{CallRecord, ToolRequest};
pub use tool_search::{Search, SearchResult};

use effective_policy::EffectivePolicy;
use file_access::FileAccess;
use limits::Limiter;
use lockhouse_host_files::HostFileSettings;
use lockhouse_stores::result_files::ResultFiles;
use lockhouse_stores::results::Results;
use lockhouse_stores::skills::Skills;
use requirements_look::RequirementsLook;
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
    files: FileAccess,
    /// The counters of the policy's rate limits.
    limiter: Limiter,
    schemas: Arc<SchemaCache>,
    results: Arc<Results>,
    result_files: ResultFiles,
    /// Maximum number of bytes of a reply to a worker. A request whose reply is longer fails.
    reply_bytes_max: usize,
    tool_lists: ToolListCache,
    requirements: RequirementsLook,
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
            files: FileAccess::new(files, upstreams.launchers(), reply_bytes_max),
            upstreams,
            skills,
            limiter,
            schemas,
            results,
            result_files,
            reply_bytes_max,
            tool_lists: ToolListCache::default(),
            requirements: RequirementsLook::default(),
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
            requirements: self.requirements.clone(),
        }
    }

    /// Returns the saved skills of all AI clients. `None` if skills are turned off.
    pub fn saved_skills(&self) -> Option<&Arc<Skills>> {
        self.skills.as_ref()
    }

    /// Lets the rates of the policy hold for all hosts of a cluster together.
    pub fn share_rates(&self, rates: LeasedRates) {
        self.limiter.share(rates);
    }

    /// From now on, no run and no call begins unless this process has looked at the administrator's requirements shortly
    /// before: see [`Self::note_requirements_look`].
    pub fn require_requirements_looks(&self) {
        self.requirements.require();
    }

    /// Notes that this process has looked at the administrator's requirements, and that they apply. `began` is the time before
    /// the files were looked at.
    pub fn note_requirements_look(&self, began: Instant) {
        self.requirements.note(began);
    }

    /// Waits until this process knows the newest requirements of the administrator. It may have been suspended.
    pub async fn wait_for_requirements_look(&self) {
        self.requirements.wait_until_recent().await;
    }

    /// Makes this gate the one that the administrator requires: executions of earlier gates use no file that this gate does
    /// not grant in the same manner.
    pub fn require_files(&self) {
        self.files.require();
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

    /// Returns the account of an AI client's user at a server. `None` if the client may not use the server, or its calls use no
    /// credentials of users.
    pub fn user_account(&self, principal: &Principal, server: &ServerName) -> Option<UserAccount> {
        let may_use = self.scope_for(principal).knows(server);
        may_use.then(|| self.upstreams.user_account(server, principal.owner())).flatten()
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
