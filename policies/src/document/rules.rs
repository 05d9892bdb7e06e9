//! Parses `[[servers.NAME.rules]]`, the rules of a server's policy table, and checks each rule against the examples
//! in its keys `match` and `not_match`.

use std::ops::Range;

use serde_json::{Map, Value as Json};
use toml::de::{DeTable, DeValue};

use super::RULES_MAX;
use super::approval_keys::RequirementReader;
use super::conditions::{self, scalar_float};
use super::lists::pattern;
use super::reader::{DocumentReader, Key, Value, integer, kind_of};
use crate::condition::{ConditionResult, PathResolution};
use crate::denial::describe_result;
use crate::effect::Effect;
use crate::list::PatternList;
use crate::pattern::PatternKind;
use crate::rule::{APPROVAL_KEYS, Rule};

/// The maximum number of examples that a policy rule may have in its key `match`. The same maximum applies to
/// `not_match`.
const EXAMPLES_MAX: usize = 50;

const RULE_KEYS: &str = "a rule has the keys `tool`, `when`, `effect`, `presence`, `approvers`, `not`, `expires_seconds`, \
     `match` and `not_match`";

pub(super) fn rules(reader: &mut DocumentReader<'_, '_>, table: &str, value: &Value<'_>) -> Vec<Rule> {
    let help = format!("write [[{table}.rules]] and below it tool = \"...\" and effect = \"...\"");
    let Some(written) = value.get_ref().as_array() else {
        let title = format!("`rules` must be a list of tables, not {}", kind_of(value));
        reader.report_error(value.span(), title, "expected a list of tables", help);
        return Vec::new();
    };
    let mut rules = Vec::new();
    for value in written {
        reader.rules += 1;
        if reader.rules > RULES_MAX {
            if reader.rules == RULES_MAX + 1 {
                let title = format!("the policy has more than {RULES_MAX} rules");
                let help = "merge rules for one tool with a list of values: owner = [\"acme\", \"umbrella\"]";
                reader.report_error(value.span(), title, "this one exceeds the limit", help);
            }
            break;
        }
        match value.get_ref().as_table() {
            Some(table) => rules.extend(rule(reader, value.span(), table)),
            None => {
                let title = format!("a rule must be a table, not {}", kind_of(value));
                reader.report_error(value.span(), title, "expected a table", help.as_str());
            }
        }
    }
    rules
}

fn rule(reader: &mut DocumentReader<'_, '_>, span: Range<usize>, table: &DeTable<'_>) -> Option<Rule> {
    for key in ["tool", "effect"] {
        if !table.contains_key(key) {
            let title = format!("this rule has no `{key}`");
            let help = match key {
                "tool" => "name the tools that the rule is for: tool = \"create_issue\"",
                _ => "state the effect on their calls: effect = \"allow\", \"ask\" or \"deny\"",
            };
            reader.report_error(span.clone(), title, &format!("`{key}` is missing"), help);
        }
    }
    let (mut tool, mut effect, mut conditions) = (None, None, Some(Vec::new()));
    let mut requirement = RequirementReader::default();
    let mut examples = Vec::new();
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "tool" if reader.count_pattern(value.span()) => {
                tool = pattern(reader, PatternKind::Tools, value).map(|pattern| (pattern, value.span()));
            }
            "tool" => {}
            "effect" => effect = read_effect(reader, value),
            approval if APPROVAL_KEYS.contains(&approval) => requirement.read(reader, key, value),
            "when" => conditions = conditions::when(reader, key, value),
            "match" => examples.extend(read_examples(reader, true, key, value)),
            "not_match" => examples.extend(read_examples(reader, false, key, value)),
            _ => reader.unknown_key(key, "a rule", RULE_KEYS),
        }
    }
    let ((tool, span), effect, conditions) = (tool?, effect?, conditions?);
    let requirement = requirement.of_rule(reader, effect)?;
    let rule = Rule { tool, conditions, effect, requirement, line: reader.line(&span), span };
    check_examples(reader, &rule, &examples);
    Some(rule)
}

fn read_effect(reader: &mut DocumentReader<'_, '_>, value: &Value<'_>) -> Option<Effect> {
    let known = Effect::ALL.into_iter().find(|effect| value.get_ref().as_str() == Some(effect.as_str()));
    if known.is_none() {
        let help = "use \"allow\", \"ask\" (requires approval) or \"deny\"";
        reader.other_word("effect", value, "expected \"allow\", \"ask\" or \"deny\"", help);
    }
    known
}

/// An example in a policy rule: the arguments of a call. The rule must apply to an example from `match`
/// (`fits` is true), and must not apply to one from `not_match`.
struct Example {
    fits: bool,
    arguments: Map<String, Json>,
    span: Range<usize>,
}

fn read_examples(
    reader: &mut DocumentReader<'_, '_>,
    fits: bool,
    key: &Key<'_>,
    value: &Value<'_>,
) -> Vec<Example> {
    let name = key.get_ref();
    let help = format!("write arguments in braces: {name} = [{{ owner = \"acme\" }}]");
    let Some(list) = value.get_ref().as_array() else {
        let title = format!("`{name}` must be a list of arguments, not {}", kind_of(value));
        reader.report_error(value.span(), title, "expected a list", help);
        return Vec::new();
    };
    if list.len() > EXAMPLES_MAX {
        let title = format!("`{name}` has more than {EXAMPLES_MAX} examples");
        reader.report_error(value.span(), title, "too many", "remove redundant examples");
        return Vec::new();
    }
    let mut examples = Vec::new();
    for value in list.iter() {
        match json(value) {
            Ok(Json::Object(arguments)) => examples.push(Example { fits, arguments, span: value.span() }),
            Ok(_) => {
                let title = format!("an example must be a table of arguments, not {}", kind_of(value));
                reader.report_error(value.span(), title, "expected a table", help.as_str());
            }
            Err(span) => {
                let title = "an argument cannot have this value";
                let help = "arguments are strings, finite numbers, booleans, lists and tables";
                reader.report_error(span, title, "JSON has no such value", help);
            }
        }
    }
    examples
}

/// Reports examples that contradict their policy rule. Paths in examples are taken to have no symbolic links.
fn check_examples(reader: &mut DocumentReader<'_, '_>, rule: &Rule, examples: &[Example]) {
    for example in examples {
        let result = rule.evaluate(&example.arguments, PathResolution::NoSymlinks);
        match (result, example.fits) {
            (Ok(()), true) | (Err(_), false) => {}
            (Err((condition, result)), true) => {
                let title = "this rule does not apply to its example";
                let help = describe_result(condition, result);
                reader.report_error(example.span.clone(), title, "`match` says that it should", help);
            }
            (Ok(()), false) => {
                let title = "this rule applies to its example";
                let help = match rule.unknown(&example.arguments, PathResolution::NoSymlinks).next() {
                    Some((condition, why)) => {
                        let unknown = describe_result(condition, ConditionResult::Unknown(why));
                        format!("an ask or deny rule also applies in doubt: {unknown}")
                    }
                    None => "each of its conditions is met: narrow them, or correct the example".to_owned(),
                };
                reader.report_error(example.span.clone(), title, "`not_match` says that it should not", help);
            }
        }
    }
}

/// Converts a TOML value to JSON.
///
/// # Errors
/// Returns the byte range of the first part of the value that JSON cannot represent.
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

/// Reports `allow` and `ask` rules that never apply, because an entry of `deny` matches all of their tools.
pub(super) fn report_dead_rules(reader: &mut DocumentReader<'_, '_>, rules: &[Rule], deny: &PatternList) {
    for rule in rules.iter().filter(|rule| rule.effect != Effect::Deny) {
        let Some(stronger) = deny.entry_covering(&rule.tool) else { continue };
        let title = format!("this rule for \"{}\" can never apply", rule.tool);
        let help = format!(
            "line {} has \"{}\" in `deny`, which overrides all rules: remove this rule, or narrow that one",
            stronger.line, stronger.pattern
        );
        reader.report_error(rule.span.clone(), title, "`deny` covers it completely", help);
    }
}
