//! The one way from a worker's request to an upstream server, and the one caller of the policy's decision.
//!
//! [`requests`] has what workers ask for, [`direct`] what AI clients ask for themselves. What goes to a server takes the way of
//! [`call`]; questions about servers and tools are answered in [`lookups`].
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

mod approvals;
mod arguments;
mod asked;
mod briefs;
mod call;
#[cfg(test)]
mod cost;
mod denials;
mod destination;
mod direct;
mod failures;
mod force;
mod limits;
mod links;
mod listed;
mod lookups;
mod requester;
mod requests;
pub mod results;
mod schema;
mod scope;
mod search;
mod skill_requests;
pub mod skills;

use std::sync::Arc;

use lockhouse_audit::Audit;
use lockhouse_base::principal::Principal;
use lockhouse_policies::Policy;
use lockhouse_upstream::Upstreams;

pub use approvals::{
    Approval, ApprovalSettings, Approvals, Approvers, Ask, Decision as PersonsDecision, FromPerson,
    FromSupervisor, PersonsAnswer, PolicyFile, Seat, Through, Watcher,
};
pub use asked::{Asked, CallRecord};
pub use direct::Entries;
pub use limits::Usage;
pub use links::followed;
pub use lookups::{in_a_word, standing};
pub use requester::Requester;
pub use scope::{Scope, ScopeError, no_grant};
pub use search::Search;

use briefs::Briefs;
use force::Force;
use limits::Limiter;
use results::Results;
use schema::Schemas;
use skills::Skills;

/// Policy, audit log and upstream servers, together.
#[derive(Debug)]
pub struct Gate {
    policy: Force,
    audit: Arc<Audit>,
    upstreams: Upstreams,
    /// None where they are turned off.
    skills: Option<Arc<Skills>>,
    limiter: Limiter,
    schemas: Arc<Schemas>,
    results: Arc<Results>,
    /// Bytes that a reply may have.
    reply_bytes_max: usize,
    briefs: Briefs,
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
        let (policy, limiter, schemas) = (Force::of(policy), Limiter::default(), Arc::default());
        Self {
            policy,
            audit,
            upstreams,
            skills,
            limiter,
            schemas,
            results,
            reply_bytes_max,
            briefs: Briefs::default(),
        }
    }

    /// The same for another policy and other servers, with the same log and what is counted already. From now on the new
    /// policy is heard here too, besides our own.
    pub fn succeeded_by(&self, policy: Policy, upstreams: Upstreams) -> Self {
        Self {
            policy: self.policy.succeeded_by(policy),
            audit: self.audit.clone(),
            upstreams,
            skills: self.skills.clone(),
            limiter: self.limiter.clone(),
            schemas: self.schemas.clone(),
            results: self.results.clone(),
            reply_bytes_max: self.reply_bytes_max,
            briefs: Briefs::default(),
        }
    }

    pub fn audit(&self) -> Arc<Audit> {
        self.audit.clone()
    }

    /// The hash of the policy that came into force with this; none without a policy.
    pub fn policy_digest(&self) -> Option<&str> {
        self.policy.digest()
    }

    /// The policy that is in force.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.now()
    }

    pub fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// What a client may know of, whatever the policy permits besides.
    pub fn granted(&self, principal: &Principal) -> Scope {
        let all = Scope::all(self.servers());
        match principal.only() {
            Some(only) => all.granted(only),
            None => all,
        }
    }
}
