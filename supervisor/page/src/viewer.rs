//! The person who looks at a page, and what they may see and do.

use serde_json::Value;

use super::section::Section;

/// The person who looks at a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Viewer {
    /// The name under which the person logged in: of a service, that of the AI client in the policy and the audit log.
    name: String,
    rights: PageRights,
    /// The names of the person's roles, for each document of the policy that has roles. `None` if none has.
    roles: Option<Vec<Vec<String>>>,
    token: Option<ViewerToken>,
}

/// What a viewer may do beyond looking at what concerns their own AI client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRights {
    /// To answer questions of others.
    pub approve: bool,
    /// To change the policy, and accept definitions of tools.
    pub policy: bool,
    /// To read records, programs and results of others.
    pub audit: bool,
    /// To see and end the runs and sessions of others, and reload the configuration.
    pub operate: bool,
}

impl PageRights {
    pub const ALL: Self = Self { approve: true, policy: true, audit: true, operate: true };

    /// Returns the names of the rights, for the scripts of the page.
    pub(super) fn names(self) -> Vec<&'static str> {
        let all = [
            (self.approve, "approve"),
            (self.policy, "policy"),
            (self.audit, "audit"),
            (self.operate, "operate"),
        ];
        all.into_iter().filter_map(|(has, name)| has.then_some(name)).collect()
    }
}

/// The access token with which a person logged in to the page of a service. An engine verifies it with each answer.
#[derive(Clone, PartialEq, Eq)]
pub struct ViewerToken(pub String);

impl std::fmt::Debug for ViewerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ViewerToken(…)")
    }
}

impl Viewer {
    /// Returns somebody who sees and does everything: the user of this process, or an administrator of a service.
    #[must_use]
    pub fn administrator(name: impl Into<String>) -> Self {
        Self { name: name.into(), rights: PageRights::ALL, roles: None, token: None }
    }

    /// Returns somebody who sees what concerns one AI client of a service: their own.
    #[must_use]
    pub fn person(client: impl Into<String>) -> Self {
        Self { rights: PageRights::default(), ..Self::administrator(client) }
    }

    /// Returns somebody whose roles in the policy decide.
    #[must_use]
    pub fn member(
        client: impl Into<String>,
        rights: PageRights,
        roles: Vec<Vec<String>>,
        token: ViewerToken,
    ) -> Self {
        Self { name: client.into(), rights, roles: Some(roles), token: Some(token) }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn rights(&self) -> PageRights {
        self.rights
    }

    /// Returns the token with which the person answers questions; `None` if the account of the page answers.
    #[must_use]
    pub fn token(&self) -> Option<&ViewerToken> {
        self.token.as_ref()
    }

    /// Whether both are the same person, whatever their rights are.
    pub(super) fn is_same_person(&self, other: &Self) -> bool {
        self.name == other.name && self.roles.is_some() == other.roles.is_some()
    }

    /// Whether pages of this viewer are counted, because many people have such pages.
    pub(super) fn is_counted(&self) -> bool {
        self.rights != PageRights::ALL || self.roles.is_some()
    }

    /// Returns the only AI client whose records the viewer may see; `None` if the viewer may see all.
    pub(super) fn only_client(&self) -> Option<&str> {
        (!self.rights.audit).then_some(&self.name)
    }

    /// Whether the viewer may see the program and the calls of a run of this AI client.
    pub(super) fn may_read_run(&self, client: Option<&str>) -> bool {
        self.rights.audit || self.is_own(client)
    }

    fn is_own(&self, client: Option<&str>) -> bool {
        client == Some(self.name.as_str())
    }

    /// Whether the viewer may see everything in a section.
    pub(super) fn sees_all(&self, section: Section) -> bool {
        let PageRights { approve, policy, audit, operate } = self.rights;
        match section {
            Section::Processes | Section::Sessions => operate,
            Section::Runs | Section::Savings => operate || audit,
            Section::Approvals => approve && self.roles.is_none(),
            Section::Denials => policy || audit,
            Section::Servers => policy || operate,
            Section::Results => audit,
        }
    }

    /// Whether the viewer may see an item of a section, which has the name of its AI client as the member `client`.
    pub(super) fn may_see_item(&self, section: Section, item: &Value) -> bool {
        let is_of_role = section == Section::Approvals && self.may_answer(item);
        self.sees_all(section) || is_of_role || self.is_own(item["client"].as_str())
    }

    /// Whether the viewer may answer a question: a role of theirs covers its calls in each document that has roles.
    pub(super) fn may_answer(&self, question: &Value) -> bool {
        let Some(own) = &self.roles else { return self.rights.approve };
        let documents = question["roles"].as_array().map(Vec::as_slice).unwrap_or_default();
        let has_one = |(own, permitted): (&Vec<String>, &Value)| {
            let permitted = permitted.as_array().map(Vec::as_slice).unwrap_or_default();
            permitted.iter().filter_map(Value::as_str).any(|role| own.iter().any(|own| own == role))
        };
        self.rights.approve && documents.len() == own.len() && own.iter().zip(documents).all(has_one)
    }
}
