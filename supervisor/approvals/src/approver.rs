//! Who answers a question about calls, and whether that person may approve them.

use std::sync::Arc;

use lockhouse_audit::LocalUser;
use lockhouse_base::principal::Principal;
use lockhouse_policies::{ApprovalRequirement, Call, ClientName, Policy};
use nix::unistd::geteuid;

use crate::answer_error::AnswerError;

/// Who answers a question outside of the AI client.
#[derive(Clone, Debug)]
pub enum Approver {
    /// Root, or the account of this process, as the kernel reports it; `None` if it reports nobody. It may approve every call,
    /// since it may change the policy.
    Owner(Option<LocalUser>),
    /// A person whose roles in the policy decide. `user` is the process through which the answer came.
    Person { principal: Principal, user: Option<LocalUser> },
}

impl Approver {
    /// Returns the user whom the kernel reports.
    pub(super) fn user(&self) -> Option<LocalUser> {
        match self {
            Self::Owner(user) | Self::Person { user, .. } => *user,
        }
    }

    /// Returns the name of a person with roles in the policy and the audit log.
    pub(super) fn name(&self) -> Option<&ClientName> {
        match self {
            Self::Owner(_) => None,
            Self::Person { principal, .. } => principal.authenticated_client(),
        }
    }

    /// Returns the authenticated name, by which answers of the same person are recognized. Root and the account of this
    /// process are those who have logged in.
    fn identity(&self) -> String {
        match self {
            Self::Person { principal, .. } => identity_of(principal),
            Self::Owner(user) => {
                let uid = user.map_or_else(|| geteuid().as_raw(), |user| user.login_uid.unwrap_or(user.uid));
                format!("user:{uid}")
            }
        }
    }

    /// Whether the person may approve these calls now.
    fn may_approve(&self, policy: &Policy, calls: &[Call]) -> bool {
        self.may(policy, calls, Policy::may_approve)
    }

    /// Whether the person may approve these calls now and alone, whatever they require.
    fn may_break_glass(&self, policy: &Policy, calls: &[Call]) -> bool {
        self.may(policy, calls, Policy::may_break_glass)
    }

    /// Whether the roles of the person permit this for each of the calls. Nobody but the owner may without calls, since no
    /// role covers them.
    fn may(
        &self,
        policy: &Policy,
        calls: &[Call],
        permits: impl Fn(&Policy, &ClientName, &Call) -> bool,
    ) -> bool {
        match self {
            Self::Owner(_) => true,
            Self::Person { principal, .. } if principal.has_expired() || !policy.has_roles() => false,
            Self::Person { principal, .. } => principal.authenticated_client().is_some_and(|person| {
                !calls.is_empty() && calls.iter().all(|call| permits(policy, person, call))
            }),
        }
    }
}

/// Returns the authenticated name of a principal, or the user of this process if it has not authenticated.
fn identity_of(principal: &Principal) -> String {
    principal.name().map_or_else(|| format!("user:{}", geteuid()), str::to_owned)
}

/// What a question requires of the people who approve it.
#[derive(Clone, Debug, Default)]
pub(super) struct Eligibility {
    pub(super) requirement: ApprovalRequirement,
    /// The authenticated name of the person for whom the calls are made.
    requester: String,
    calls: Arc<[Call]>,
    /// Those who have approved the calls.
    approved: Vec<Approver>,
}

impl Eligibility {
    pub(super) fn new(requirement: ApprovalRequirement, requester: &Principal, calls: Vec<Call>) -> Self {
        Self { requirement, requester: identity_of(requester), calls: calls.into(), approved: Vec::new() }
    }

    /// Whether a person may see the question.
    pub(super) fn is_for(&self, approver: &Approver, policy: &Policy) -> bool {
        approver.may_approve(policy, &self.calls)
    }

    /// Checks whether an approval of this person counts.
    pub(super) fn check(&self, approver: &Approver, policy: &Policy) -> Result<(), AnswerError> {
        let identity = approver.identity();
        if !self.is_for(approver, policy) {
            return Err(AnswerError::Role);
        }
        if self.requirement.not_requester && identity == self.requester {
            return Err(AnswerError::Requester);
        }
        match self.approved.iter().any(|earlier| earlier.identity() == identity) {
            true => Err(AnswerError::ApprovedBefore),
            false => Ok(()),
        }
    }

    /// Checks whether this person may approve the calls alone, whatever they require.
    pub(super) fn check_break_glass(&self, approver: &Approver, policy: &Policy) -> Result<(), AnswerError> {
        approver.may_break_glass(policy, &self.calls).then_some(()).ok_or(AnswerError::BreakGlass)
    }

    /// Adds somebody who has approved the calls. Returns whether enough people have approved them who may still do so.
    pub(super) fn add(&mut self, approver: Approver, policy: &Policy) -> bool {
        self.approved.push(approver);
        let calls = &self.calls;
        self.approved.retain(|approver| approver.may_approve(policy, calls));
        self.approved.len() >= self.requirement.approvers as usize
    }

    /// Returns the names of those who have approved the calls.
    pub(super) fn approved_by(&self) -> Vec<String> {
        let name = |approver: &Approver| match approver.name() {
            Some(name) => name.as_str().to_owned(),
            None => approver.identity(),
        };
        self.approved.iter().map(name).collect()
    }

    /// Returns what the question requires as lines for the people who are asked. Empty if it requires one answer.
    pub(super) fn text(&self) -> String {
        let ApprovalRequirement { approvers, not_requester, expires_seconds, .. } = self.requirement;
        let mut text = String::new();
        if approvers > 1 {
            text.push_str(&format!("This needs the approval of {approvers} people.\n"));
        }
        if not_requester {
            text.push_str("Whoever lets it be called cannot approve it.\n");
        }
        if let Some(seconds) = expires_seconds {
            text.push_str(&format!("It can be approved within {seconds} s.\n"));
        }
        let approved = self.approved_by();
        if !approved.is_empty() {
            text.push_str(&format!("Approved by: {}.\n", approved.join(", ")));
        }
        text
    }
}
