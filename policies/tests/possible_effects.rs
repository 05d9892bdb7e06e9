//! Tests of the policy effects that are possible for calls of a tool before their arguments are known.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use lockhouse_policies::{Call, ClientName, Diagnostics, Effect, Policy, Source, explain};
use lockhouse_protocol::{ServerName, ToolName};
use serde_json::{Map, Value, json};

fn parsed(tables: &str) -> Result<Policy, Diagnostics> {
    Policy::parse(Source { path: "p".into(), text: format!("version = 1\n{tables}") })
}

fn policy(tables: &str) -> Policy {
    parsed(tables).unwrap()
}

fn rule(effect: &str) -> String {
    format!("[[servers.s.rules]]\ntool = \"t\"\nwhen = {{ a = 1 }}\neffect = \"{effect}\"\n")
}

/// Checks `certain_effect` for all combinations of a list, a rule and a restricting policy. It must return an
/// effect exactly if calls with all arguments have this effect.
#[test]
fn a_certain_effect_does_not_depend_on_arguments() {
    let (server, tool) = (ServerName::new("s").unwrap(), ToolName::new("t").unwrap());
    let lists = ["", "allow = [\"t\"]", "ask = [\"t\"]", "allow = [\"t\"]\nask = [\"*\"]", "deny = [\"t\"]"];
    let rules = [String::new(), rule("allow"), rule("ask"), rule("deny")];
    let above =
        [None, Some("[servers.s]\nallow = [\"*\"]\n"), Some("[servers.s]\nask = [\"*\"]\n"), Some("")];
    let mut uncertain = 0;
    for list in lists {
        for rule in &rules {
            for above in above {
                let text = format!("[servers.s]\n{list}\n{rule}");
                // A document with a rule that never applies is invalid.
                let Ok(mut policy_of_both) = parsed(&text) else { continue };
                if let Some(above) = above {
                    policy_of_both = policy_of_both.restricted_by(policy(above));
                }
                let decided = |arguments: Value| {
                    let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
                    explain(&policy_of_both, &Call::new(&server, &tool).with_arguments(arguments)).effect
                };
                let found = [json!({}), json!({"a": 1}), json!({"a": 2}), json!({"a": "x"})].map(decided);
                let certain = policy_of_both.certain_effect(&server, &(&tool).into(), None);
                let same = found.iter().all(|effect| *effect == found[0]);
                assert_eq!(certain, same.then_some(found[0]), "{text}\nbelow {above:?}: {found:?}");
                assert_eq!(
                    policy_of_both.may_require_approval(&server, &tool, None),
                    found.contains(&Effect::Ask),
                    "{text}\nbelow {above:?}: {found:?}"
                );
                uncertain += usize::from(certain.is_none());
            }
        }
    }
    assert!(uncertain > 10, "control: {uncertain}");
}

#[test]
fn a_client_table_changes_the_possible_effects() {
    let (server, tool) = (ServerName::new("s").unwrap(), ToolName::new("t").unwrap());
    let policy = policy("[servers.s]\nallow = [\"t\"]\n[clients.x.servers.s]\nask = [\"t\"]\n");
    let client = ClientName::new("x");
    assert_eq!(policy.certain_effect(&server, &(&tool).into(), None), Some(Effect::Allow));
    assert_eq!(policy.certain_effect(&server, &(&tool).into(), Some(&client)), Some(Effect::Ask));
    assert!(
        policy.may_require_approval(&server, &tool, Some(&client))
            && !policy.may_require_approval(&server, &tool, None)
    );
}
