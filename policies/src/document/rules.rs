//! `[[servers.NAME.rules]]`, and the examples that each may carry.

use std::ops::Range;

use serde_json::{Map, Value as Json};
use toml::de::{DeTable, DeValue};

use super::RULES_MAX;
use super::conditions::{self, scalar_float};
use super::lists::pattern;
use super::reader::{Key, Reader, Value, integer, kind_of};
use crate::condition::{Judged, World};
use crate::denial::unmet;
use crate::effect::Effect;
use crate::list::List;
use crate::pattern::Subject;
use crate::printable::printable;
use crate::rule::Rule;

/// The most examples of one rule, of each kind.
const EXAMPLES_MAX: usize = 50;

const RULE_KEYS: &str = "a rule has the keys `tool`, `when`, `effect`, `match` and `not_match`";

pub(super) fn rules(reader: &mut Reader<'_, '_>, table: &str, value: &Value<'_>) -> Vec<Rule> {
    let help = format!("write [[{table}.rules]] and below it tool = \"...\" and effect = \"...\"");
    let Some(written) = value.get_ref().as_array() else {
        let title = format!("`rules` must be a list of tables, not {}", kind_of(value));
        reader.refuse(value.span(), title, "expected a list of tables", help);
        return Vec::new();
    };
    let mut rules = Vec::new();
    for value in written {
        reader.rules += 1;
        if reader.rules > RULES_MAX {
            if reader.rules == RULES_MAX + 1 {
                let title = format!("the policy has more than {RULES_MAX} rules");
                let help = "join rules of one tool by a list of values: owner = [\"acme\", \"umbrella\"]";
                reader.refuse(value.span(), title, "this one is too many", help);
            }
            break;
        }
        match value.get_ref().as_table() {
            Some(table) => rules.extend(rule(reader, value.span(), table)),
            None => {
                let title = format!("a rule must be a table, not {}", kind_of(value));
                reader.refuse(value.span(), title, "expected a table", help.as_str());
            }
        }
    }
    rules
}

fn rule(reader: &mut Reader<'_, '_>, span: Range<usize>, table: &DeTable<'_>) -> Option<Rule> {
    for key in ["tool", "effect"] {
        if !table.contains_key(key) {
            let title = format!("this rule has no `{key}`");
            let help = match key {
                "tool" => "write the tools that it is about: tool = \"create_issue\"",
                _ => "write what becomes of their calls: effect = \"allow\", \"ask\" or \"deny\"",
            };
            reader.refuse(span.clone(), title, &format!("`{key}` is missing"), help);
        }
    }
    let (mut tool, mut effect, mut conditions) = (None, None, Some(Vec::new()));
    let mut examples = Vec::new();
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "tool" if reader.has_room(value.span()) => {
                tool = pattern(reader, Subject::Tools, value).map(|pattern| (pattern, value.span()));
            }
            "tool" => {}
            "effect" => effect = read_effect(reader, value),
            "when" => conditions = conditions::when(reader, key, value),
            "match" => examples.extend(read_examples(reader, true, key, value)),
            "not_match" => examples.extend(read_examples(reader, false, key, value)),
            _ => reader.unknown_key(key, "a rule", RULE_KEYS),
        }
    }
    let ((tool, span), effect, conditions) = (tool?, effect?, conditions?);
    let rule = Rule { tool, conditions, effect, line: reader.line(&span), span };
    check_examples(reader, &rule, &examples);
    Some(rule)
}

fn read_effect(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Effect> {
    let written = value.get_ref().as_str();
    let known = Effect::ALL.into_iter().find(|effect| written == Some(effect.as_str()));
    if known.is_none() {
        let title = match written {
            Some(other) => format!("`effect` cannot be \"{}\"", printable(other)),
            None => format!("`effect` must be a string, not {}", kind_of(value)),
        };
        let help = "use \"allow\", \"ask\" (a person decides) or \"deny\"";
        reader.refuse(value.span(), title, "expected \"allow\", \"ask\" or \"deny\"", help);
    }
    known
}

/// Arguments that a rule must fit, or must not.
struct Example {
    fits: bool,
    arguments: Map<String, Json>,
    span: Range<usize>,
}

fn read_examples(reader: &mut Reader<'_, '_>, fits: bool, key: &Key<'_>, value: &Value<'_>) -> Vec<Example> {
    let name = key.get_ref();
    let help = format!("write arguments in braces: {name} = [{{ owner = \"acme\" }}]");
    let Some(list) = value.get_ref().as_array() else {
        let title = format!("`{name}` must be a list of arguments, not {}", kind_of(value));
        reader.refuse(value.span(), title, "expected a list", help);
        return Vec::new();
    };
    if list.len() > EXAMPLES_MAX {
        let title = format!("`{name}` has more than {EXAMPLES_MAX} examples");
        reader.refuse(value.span(), title, "too many", "keep those that show something");
        return Vec::new();
    }
    let mut examples = Vec::new();
    for value in list.iter() {
        match json(value) {
            Ok(Json::Object(arguments)) => examples.push(Example { fits, arguments, span: value.span() }),
            Ok(_) => {
                let title = format!("an example must be a table of arguments, not {}", kind_of(value));
                reader.refuse(value.span(), title, "expected a table", help.as_str());
            }
            Err(span) => {
                let title = "an argument cannot be this";
                let help = "arguments are strings, finite numbers, booleans, lists and tables";
                reader.refuse(span, title, "no value that JSON has", help);
            }
        }
    }
    examples
}

/// In an example no path has links, so that each leads where it says.
fn check_examples(reader: &mut Reader<'_, '_>, rule: &Rule, examples: &[Example]) {
    for example in examples {
        let judged = rule.judge(&example.arguments, World::Plain);
        match (judged, example.fits) {
            (Ok(()), true) | (Err(_), false) => {}
            (Err((condition, judged)), true) => {
                let title = "this rule does not apply to its example";
                let help = format!("a condition is {}", unmet(condition, judged));
                reader.refuse(example.span.clone(), title, "it should, says `match`", help);
            }
            (Ok(()), false) => {
                let title = "this rule applies to its example";
                let help = match rule.unknown(&example.arguments, World::Plain).next() {
                    Some((condition, why)) => {
                        let unknown = unmet(condition, Judged::Unknown(why));
                        format!("a rule that does not allow applies although a condition is {unknown}")
                    }
                    None => "each of its conditions is met: narrow them, or correct the example".to_owned(),
                };
                reader.refuse(example.span.clone(), title, "it should not, says `not_match`", help);
            }
        }
    }
}

/// # Errors
/// Where something stands that JSON does not have.
fn json(value: &Value<'_>) -> Result<Json, Range<usize>> {
    match value.get_ref() {
        DeValue::String(text) => Ok(Json::from(text.as_ref())),
        DeValue::Integer(_) => integer(value).map(Json::from).ok_or(value.span()),
        DeValue::Float(_) => scalar_float(value).map(Json::from).ok_or(value.span()),
        DeValue::Boolean(boolean) => Ok(Json::from(*boolean)),
        DeValue::Datetime(_) => Err(value.span()),
        DeValue::Array(list) => list.iter().map(json).collect(),
        DeValue::Table(table) => {
            let pairs = table.iter().map(|(key, value)| Ok((key.get_ref().to_string(), json(value)?)));
            pairs.collect::<Result<Map<_, _>, _>>().map(Json::Object)
        }
    }
}

/// Finds rules that permit in vain.
pub(super) fn refuse_dead_rules(reader: &mut Reader<'_, '_>, rules: &[Rule], deny: &List) {
    for rule in rules.iter().filter(|rule| rule.effect != Effect::Deny) {
        let Some(stronger) = deny.covering(&rule.tool) else { continue };
        let title = format!("this rule for \"{}\" can never apply", rule.tool);
        let help = format!(
            "line {} has \"{}\" in `deny`, which no rule overrides: remove this rule, or narrow that one",
            stronger.line, stronger.pattern
        );
        reader.refuse(rule.span.clone(), title, "all of it is denied", help);
    }
}
