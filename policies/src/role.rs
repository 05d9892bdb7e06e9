//! The tables `[roles.NAME]` of a policy: what people may do with a service, by what their authentication proves of them.

use std::collections::{BTreeMap, BTreeSet};

use lockhouse_protocol::ServerName;

use crate::call::ClientName;
use crate::table::{LimitsEntry, ServerTable};

/// What a role permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoleKind {
    /// To run programs and call tools.
    Run,
    /// To answer questions about calls of others.
    Approve,
    /// To change the policy.
    Policy,
    /// To read the audit log, and the results and files of others.
    Audit,
    /// To observe and operate the service.
    Operate,
}

impl RoleKind {
    /// All kinds, with the names that policies use.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("run", Self::Run),
        ("approve", Self::Approve),
        ("policy", Self::Policy),
        ("audit", Self::Audit),
        ("operate", Self::Operate),
    ];

    /// Whether a role of this kind can be restricted to servers and tools.
    pub(crate) fn has_calls(self) -> bool {
        matches!(self, Self::Run | Self::Approve)
    }
}

/// The table `[roles.NAME]` of a policy.
#[derive(Clone, Debug)]
pub(crate) struct RoleTable {
    pub(crate) name: String,
    /// Who has the role: each is a name or a membership, or the beginning of one if the flag is true.
    pub(crate) members: Vec<(String, bool)>,
    pub(crate) may: BTreeSet<RoleKind>,
    /// Whether a member may approve a call alone that requires more, with a reason that is recorded.
    pub(crate) break_glass: bool,
    /// The calls that a member makes or approves; `None` if all.
    pub(crate) servers: Option<BTreeMap<ServerName, ServerTable>>,
    /// The limits of each member.
    pub(crate) each: Option<LimitsEntry>,
    /// The limits that all members share.
    pub(crate) together: Option<LimitsEntry>,
    /// The line of the role's name in the policy document, counted from 1.
    pub(crate) line: usize,
}

impl RoleTable {
    pub(crate) fn has_member(&self, person: &ClientName) -> bool {
        self.members.iter().any(|(stem, is_starred)| match is_starred {
            true => person.memberships().any(|membership| membership.starts_with(stem.as_str())),
            false => person.memberships().any(|membership| membership == stem),
        })
    }
}
