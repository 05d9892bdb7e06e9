//! The latest denials, equal ones together.

use lockhouse_audit::CallIdentity;
use serde_json::{Value, json};

use crate::text;

/// Maximum number of different denials that are stored. A further one replaces the one that occurred longest ago.
const DENIALS_MAX: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Denials(Vec<Denial>);

/// Denials of one AI client's calls of the same item, for the same reason.
#[derive(Debug, PartialEq)]
struct Denial {
    client: Option<String>,
    server: String,
    kind: &'static str,
    item: String,
    decision: String,
    reason: String,
    rule: Option<String>,
    count: u64,
    first: String,
    last: String,
    /// The run of the latest denial, and the line of its program.
    execution: String,
    line: Option<u32>,
}

impl Denials {
    /// Adds a denial with its decision, its reason and the place of its rule.
    pub(super) fn add(
        &mut self,
        time: &str,
        about: &CallIdentity,
        (decision, reason, rule): (&str, &str, Option<&str>),
    ) {
        let denial = Denial {
            client: about.client.as_deref().map(text::name),
            server: text::name(&about.server),
            kind: about.kind,
            item: text::name(&about.item),
            decision: decision.to_owned(),
            reason: text::long(reason),
            rule: rule.map(text::name),
            count: 1,
            first: time.to_owned(),
            last: time.to_owned(),
            execution: about.execution.clone(),
            line: about.line,
        };
        if let Some(known) = self.0.iter_mut().find(|known| known.is_same(&denial)) {
            known.count += 1;
            if denial.last >= known.last {
                (known.last, known.execution, known.line) = (denial.last, denial.execution, denial.line);
            }
            return;
        }
        if self.0.len() == DENIALS_MAX
            && let Some((oldest, _)) = self.0.iter().enumerate().min_by_key(|(_, known)| &known.last)
        {
            self.0.swap_remove(oldest);
        }
        self.0.push(denial);
    }

    /// Returns the denials, the latest first.
    pub(super) fn to_json(&self) -> Value {
        let mut latest: Vec<&Denial> = self.0.iter().collect();
        latest.sort_by(|one, other| other.last.cmp(&one.last));
        latest.into_iter().map(Denial::to_json).collect()
    }
}

impl Denial {
    fn is_same(&self, other: &Self) -> bool {
        let key = |denial: &Self| {
            let Self { client, server, kind, item, decision, reason, rule, .. } = denial;
            (
                client.clone(),
                server.clone(),
                *kind,
                item.clone(),
                decision.clone(),
                reason.clone(),
                rule.clone(),
            )
        };
        key(self) == key(other)
    }

    fn to_json(&self) -> Value {
        let suggests: &[&str] = if self.kind == "tool" { &["ask", "allow"] } else { &[] };
        json!({
            "client": self.client, "server": self.server, "kind": self.kind, "item": self.item,
            "decision": self.decision, "reason": self.reason, "rule": self.rule, "count": self.count,
            "first": self.first, "last": self.last, "execution": self.execution, "line": self.line,
            "suggests": suggests,
        })
    }
}
