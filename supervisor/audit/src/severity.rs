//! The severity of administrative records. One table decides by the kind of a record and its outcome or target.

/// How much an administrative record deserves the attention of the people who watch the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Info,
    Warning,
    High,
}

/// Matches every outcome and every target.
const ANY: &str = "*";

/// The severities: the event of a record, its outcome or target, and the severity. The first row that matches decides;
/// everything else is [`Severity::Info`].
const SEVERITIES: [(&str, &str, Severity); 20] = [
    ("change", "failed", Severity::Info),
    ("change", "requirements", Severity::High),
    ("change", ANY, Severity::Warning),
    ("token", "failed", Severity::Info),
    ("token", ANY, Severity::Warning),
    ("definition", ANY, Severity::Warning),
    ("login", "failed", Severity::Warning),
    ("login", "granted", Severity::Warning),
    ("authentication", "refused", Severity::Warning),
    ("reload", "refused", Severity::Warning),
    ("termination", "administrator", Severity::High),
    ("termination", ANY, Severity::Warning),
    ("server", "failed", Severity::Warning),
    ("server", "lost", Severity::Warning),
    ("action", "failed", Severity::Warning),
    ("denial", ANY, Severity::Warning),
    ("refusal", ANY, Severity::Warning),
    ("clock", ANY, Severity::Warning),
    ("gap", ANY, Severity::High),
    ("end", "killed", Severity::Warning),
];

impl Severity {
    /// Returns the severity of a record of the kind `event`, whose outcome, target or channel are `facts`.
    pub fn of(event: &str, facts: &[&str]) -> Self {
        let matches =
            |known: &&(&str, &str, Self)| known.0 == event && (known.1 == ANY || facts.contains(&known.1));
        SEVERITIES.iter().find(matches).map_or(Self::Info, |(_, _, severity)| *severity)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::High => "high",
        }
    }

    /// Parses the member `severity` of a record. `None` for the word of a later version.
    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Info, Self::Warning, Self::High].into_iter().find(|severity| severity.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_matches_decides() {
        let table = [
            ("change", &["changed", "requirements"][..], Severity::High),
            ("change", &["failed", "requirements"], Severity::Info),
            ("change", &["changed", "policy"], Severity::Warning),
            ("server", &["started"], Severity::Info),
            ("termination", &["run", "administrator"], Severity::High),
            ("of a later version", &["failed"], Severity::Info),
        ];
        for (event, facts, expected) in table {
            assert_eq!(Severity::of(event, facts), expected, "{event} {facts:?}");
            assert_eq!(Severity::parse(expected.as_str()), Some(expected));
        }
    }
}
