//! Parses the keys of a rule that say what an approval requires: `presence`, `approvers`, `not` and `expires_seconds`.

use std::ops::Range;

use super::reader::{DocumentReader, Key, Value, integer, kind_of};
use crate::approval_requirement::{APPROVERS_MAX, ApprovalRequirement};
use crate::effect::Effect;
use crate::rule_presence::RulePresence;

/// The longest time for an answer, in seconds, as in the configuration.
const EXPIRES_SECONDS_MAX: u32 = 3_600;

/// Reads what an approval requires from the keys of one rule.
#[derive(Default)]
pub(super) struct RequirementReader {
    requirement: ApprovalRequirement,
    /// The first of the keys, with its place.
    first: Option<(String, Range<usize>)>,
    has_errors: bool,
}

impl RequirementReader {
    pub(super) fn read(&mut self, reader: &mut DocumentReader<'_, '_>, key: &Key<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        self.first.get_or_insert_with(|| (name.to_owned(), value.span()));
        let requirement = &mut self.requirement;
        let is_valid = match name {
            "presence" => {
                requirement.presence = presence(reader, value);
                requirement.presence.is_some()
            }
            "not" => {
                requirement.not_requester = value.get_ref().as_str() == Some("requester");
                if !requirement.not_requester {
                    let help = "write not = \"requester\": whoever lets the call be made does not approve it";
                    reader.other_word("not", value, "expected \"requester\"", help);
                }
                requirement.not_requester
            }
            "approvers" => {
                let count = number(reader, name, value, APPROVERS_MAX);
                requirement.approvers = count.unwrap_or(1);
                count.is_some()
            }
            _ => {
                requirement.expires_seconds = number(reader, name, value, EXPIRES_SECONDS_MAX);
                requirement.expires_seconds.is_some()
            }
        };
        self.has_errors |= !is_valid;
    }

    /// Returns the requirement of a rule with this effect. `None` after an error.
    pub(super) fn of_rule(
        self,
        reader: &mut DocumentReader<'_, '_>,
        effect: Effect,
    ) -> Option<ApprovalRequirement> {
        if let (Some((key, at)), true) = (&self.first, effect != Effect::Ask) {
            let title = format!("a rule with effect = \"{effect}\" cannot have `{key}`");
            let help = match key.as_str() {
                "presence" => {
                    "only an approval can prove that a person is there: use effect = \"ask\", or remove `presence`".to_owned()
                }
                key => format!("only an approval can require it: use effect = \"ask\", or remove `{key}`"),
            };
            reader.report_error(at.clone(), title, "nobody approves these calls", help);
            return None;
        }
        (!self.has_errors).then_some(self.requirement)
    }
}

fn presence(reader: &mut DocumentReader<'_, '_>, value: &Value<'_>) -> Option<RulePresence> {
    let known = RulePresence::ALL.into_iter().find(|level| value.get_ref().as_str() == Some(level.as_str()));
    if known.is_none() {
        let help = "use \"password\" or \"key\", or remove `presence`";
        reader.other_word("presence", value, "expected \"password\" or \"key\"", help);
    }
    known
}

fn number(reader: &mut DocumentReader<'_, '_>, key: &str, value: &Value<'_>, max: u32) -> Option<u32> {
    let number = integer(value).and_then(|number| u32::try_from(number).ok());
    let valid = number.filter(|number| (1..=max).contains(number));
    if valid.is_none() {
        let title = match value.get_ref().as_integer() {
            Some(number) => format!("`{key}` cannot be {}", number.as_str()),
            None => format!("`{key}` must be a number, not {}", kind_of(value)),
        };
        let help = format!("write a number from 1 to {max}");
        reader.report_error(value.span(), title, "not possible", help);
    }
    valid
}
