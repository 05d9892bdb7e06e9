//! What roles permit a person: the questions that a policy answers about `[roles.NAME]`.

use crate::call::{Call, ClientName};
use crate::condition::PathResolution;
use crate::effect::Effect;
use crate::layer::{Layer, LayerView, ViewScope};
use crate::policy::Policy;
use crate::role::{RoleKind, RoleTable};

impl Layer {
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
