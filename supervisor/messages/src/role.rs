//! The roles of a grant: which kinds of requests its holder may make.

use serde::{Deserialize, Serialize};

/// One kind of requests. Each request requires at most one role ([`Request::role`](crate::Request::role)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The requests of an AI client: to run programs and call tools within the policy, to search and list tools, to read
    /// its own results, to answer questions of its own runs, and to get the health report.
    Run,
    /// To see and answer questions of the runs of all AI clients.
    Approve,
    /// To change the policy.
    Policy,
    /// To read the audit log, and the stored results and files of all AI clients.
    Audit,
    /// To observe and operate the service as a whole: readiness, metrics, health, lists of runs and sessions and their
    /// end, and reloads of the configuration.
    Operate,
}

impl Role {
    /// Returns what the role permits, as the end of the sentence "this access does not permit …".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Run => "running code and calling tools",
            Self::Approve => "answering questions of other clients",
            Self::Policy => "changing the policy",
            Self::Audit => "reading the audit log and results of other clients",
            Self::Operate => "operating the service",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Role>", into = "Vec<Role>")]
pub struct Roles(u8);

impl Roles {
    const ALL: [Role; 5] = [Role::Run, Role::Approve, Role::Policy, Role::Audit, Role::Operate];

    pub const fn only(role: Role) -> Self {
        Self(role.bit())
    }

    /// Returns this set with one more role.
    #[must_use]
    pub const fn with(self, role: Role) -> Self {
        Self(self.0 | role.bit())
    }

    pub const fn has(self, role: Role) -> bool {
        self.0 & role.bit() != 0
    }
}

impl From<Vec<Role>> for Roles {
    fn from(roles: Vec<Role>) -> Self {
        Self(roles.into_iter().fold(0, |bits, role| bits | role.bit()))
    }
}

impl From<Roles> for Vec<Role> {
    fn from(roles: Roles) -> Self {
        Roles::ALL.into_iter().filter(|role| roles.has(*role)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_exactly_its_roles_after_serialization() {
        for chosen in [vec![], vec![Role::Run], vec![Role::Run, Role::Operate], Roles::ALL.to_vec()] {
            let roles = Roles::from(chosen.clone());
            let text = serde_json::to_string(&roles).expect("it can be written");
            let read: Roles = serde_json::from_str(&text).expect("it can be read");
            for role in Roles::ALL {
                assert_eq!(read.has(role), chosen.contains(&role), "{text} {role:?}");
            }
        }
        assert_eq!(serde_json::to_string(&Roles::only(Role::Run)).expect("text"), r#"["run"]"#);
        assert!(serde_json::from_str::<Roles>(r#"["root"]"#).is_err());
    }
}
