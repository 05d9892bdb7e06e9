//! The names of the sections of a page.

/// A section of the page. The name is that of its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    Processes,
    Runs,
    Sessions,
    Approvals,
    Denials,
    Servers,
    Results,
    Savings,
}

impl Section {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Runs => "runs",
            Self::Sessions => "sessions",
            Self::Approvals => "approvals",
            Self::Denials => "denials",
            Self::Servers => "servers",
            Self::Results => "results",
            Self::Savings => "savings",
        }
    }
}
