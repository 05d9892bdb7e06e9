//! The tables `[roles.NAME]` of a policy: what people may do with a service, by what their authentication proves of them.

use std::collections::BTreeSet;

use crate::call::{Call, ClientName};
use crate::condition::PathResolution;
use crate::effect::Effect;
use crate::layer::{Layer, LayerView, Servers, ViewScope};
use crate::policy::Policy;

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
    pub(crate) servers: Option<Servers>,
    /// The line of the role's name in the policy document, counted from 1.
    pub(crate) line: usize,
}

impl RoleTable {
    fn has_member(&self, person: &ClientName) -> bool {
        self.members.iter().any(|(stem, is_starred)| match is_starred {
            true => person.memberships().any(|membership| membership.starts_with(stem.as_str())),
            false => person.memberships().any(|membership| membership == stem),
        })
    }
}

impl Layer {
    /// Returns the server tables of all roles.
    pub(crate) fn servers_of_roles(&self) -> impl Iterator<Item = &Servers> {
        self.roles.iter().flatten().filter_map(|role| role.servers.as_ref())
    }

    /// Returns the roles of a person, in the order of the document.
    fn roles_of<'p>(&'p self, person: &ClientName) -> impl Iterator<Item = &'p RoleTable> {
        self.roles.iter().flatten().filter(move |role| role.has_member(person))
    }

    /// Returns the view that restricts what a person calls: that of the first role with `run`. `None` if it does not
    /// restrict anything, or if roles do not apply to the client, because no authentication is required of it.
    pub(crate) fn role_view(&self, client: Option<&ClientName>) -> Option<LayerView<'_>> {
        static NOTHING: Servers = Servers::new();
        let person = client.filter(|client| self.roles.is_some() && client.is_authenticated())?;
        let role = self.roles_of(person).find(|role| role.may.contains(&RoleKind::Run));
        let (servers, scope) = match role {
            Some(role) => (role.servers.as_ref()?, ViewScope::Role(role)),
            None => (&NOTHING, ViewScope::NoRole),
        };
        Some(LayerView { layer: self, servers, scope })
    }

    /// Whether a person has a role that meets a condition, if the document has roles.
    fn grants(&self, person: &ClientName, is_met: impl Fn(&RoleTable) -> bool) -> bool {
        self.roles.is_none() || self.roles_of(person).any(is_met)
    }

    /// Whether a role covers a call, with or without approval.
    fn covers(&self, role: &RoleTable, call: &Call) -> bool {
        let Some(servers) = &role.servers else { return true };
        let view = LayerView { layer: self, servers, scope: ViewScope::Role(role) };
        view.deciding_statement(call, PathResolution::Known(&call.resolved_paths)).effect() != Effect::Deny
    }
}

impl Policy {
    /// Whether a document of the policy has roles. Otherwise clients of a service run programs, and whoever may read its
    /// files does the rest.
    #[must_use]
    pub fn has_roles(&self) -> bool {
        self.layers().any(|layer| layer.roles.is_some())
    }

    /// Whether a person has a role of this kind, in every document that has roles.
    #[must_use]
    pub fn has_role(&self, person: &ClientName, kind: RoleKind) -> bool {
        self.layers().all(|layer| layer.grants(person, |role| role.may.contains(&kind)))
    }

    /// Whether a person may approve a call that somebody else, or the same person, makes. Assumes that the policy has roles.
    #[must_use]
    pub fn may_approve(&self, person: &ClientName, call: &Call) -> bool {
        self.layers().all(|layer| {
            layer.grants(person, |role| role.may.contains(&RoleKind::Approve) && layer.covers(role, call))
        })
    }

    /// Returns the names of the roles that may approve all of these calls, for each document that has roles.
    #[must_use]
    pub fn approving_roles(&self, calls: &[Call]) -> Vec<Vec<String>> {
        let of_layer = |layer: &Layer| {
            let covers = |role: &&RoleTable| {
                role.may.contains(&RoleKind::Approve) && calls.iter().all(|call| layer.covers(role, call))
            };
            layer
                .roles
                .as_ref()
                .map(|roles| roles.iter().filter(covers).map(|role| role.name.clone()).collect())
        };
        self.layers().filter_map(of_layer).collect()
    }

    /// Returns the names of the roles of a person, for each document that has roles.
    #[must_use]
    pub fn roles_of(&self, person: &ClientName) -> Vec<Vec<String>> {
        let of_layer = |layer: &Layer| {
            let names = || layer.roles_of(person).map(|role| role.name.clone()).collect();
            layer.roles.as_ref().map(|_| names())
        };
        self.layers().filter_map(of_layer).collect()
    }

    /// Whether a person may approve a call alone, with a reason, although it requires more.
    #[must_use]
    pub fn may_break_glass(&self, person: &ClientName, call: &Call) -> bool {
        self.layers().all(|layer| layer.grants(person, |role| role.break_glass && layer.covers(role, call)))
    }
}
