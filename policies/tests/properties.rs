//! Property tests of policies, with arbitrary patterns, names and texts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use lockhouse_policies::{
    Call, CallTarget, Decision, Diagnostic, PATTERNS_MAX, Pattern, PatternKind, Policy, ServerOffer, Source,
    TEXT_BYTES_MAX, ToolOffer, render_template,
};
use lockhouse_protocol::{ServerName, ToolName};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

fn parsed(text: String) -> Policy {
    Policy::parse(Source { path: "policy.toml".to_owned(), text }).unwrap_or_else(|errors| panic!("{errors}"))
}

fn server() -> ServerName {
    ServerName::new("s").unwrap()
}

fn tool(name: impl Into<String>) -> ToolName {
    ToolName::new(name).unwrap()
}

/// Generates policy patterns over a small alphabet, so that they often match the generated tool names.
fn patterns() -> impl Strategy<Value = Vec<String>> {
    btree_set("[ab/]{0,3}\\*|[ab/]{1,3}", 0..6).prop_map(|set| set.into_iter().collect())
}

/// Whether the policy pattern matches the name, by an implementation that is independent of the policy crate.
fn matches_name(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

proptest! {
    #[test]
    fn deny_outranks_allow_and_unlisted_tools_are_denied(allow in patterns(), deny in patterns(), name in "[ab/]{1,4}") {
        let text = format!("version = 1\n[servers.s]\nallow = {allow:?}\ndeny = {deny:?}\n");
        // A document with `allow` entries that `deny` covers is invalid.
        let Ok(policy) = Policy::parse(Source { path: "p".to_owned(), text }) else { return Ok(()) };
        let denied = deny.iter().any(|pattern| matches_name(pattern, &name));
        let listed = allow.iter().any(|pattern| matches_name(pattern, &name));
        let name = tool(name);
        prop_assert_eq!(policy.permits(&server(), &name, None), listed && !denied);
        prop_assert_eq!(matches!(policy.decide(Call::new(&server(), &name)), Decision::Allow(_)), listed && !denied);
    }

    #[test]
    fn a_trailing_star_matches_a_prefix(prefix in "[a-c_./-]{0,3}", name in "[a-c_./-]{1,5}") {
        let pattern = Pattern::parse(PatternKind::Tools, &format!("{prefix}*")).unwrap();
        prop_assert_eq!(pattern.permits(&CallTarget::Tool(tool(name.clone()))), name.starts_with(&prefix));
    }

    #[test]
    fn a_covering_pattern_matches_each_name_that_the_covered_one_matches(wide in "[ab]{0,2}\\*?", narrow in "[ab]{0,3}\\*?", name in "[ab]{1,4}") {
        let (Ok(wide), Ok(narrow)) = (Pattern::parse(PatternKind::Tools, &wide), Pattern::parse(PatternKind::Tools, &narrow)) else { return Ok(()) };
        let name = CallTarget::Tool(tool(name));
        if wide.covers(&narrow) && narrow.permits(&name) {
            prop_assert!(wide.permits(&name));
        }
    }

    #[test]
    fn no_text_makes_parsing_or_rendering_panic(text in any::<String>()) {
        for text in [text.clone(), format!("version = 1\n{text}"), format!("version = 1\n[servers.a]\nallow = [{text}]")] {
            if let Err(errors) = Policy::parse(Source { path: text.clone(), text }) {
                let hidden = |c: char| c.is_control() && c != '\n';
                prop_assert!(!errors.render(false).contains(hidden));
                let _ = errors.render(true);
            }
        }
    }

    #[test]
    fn no_document_resembling_a_policy_makes_parsing_panic(
        tokens in vec(prop::sample::select(vec![
            "version", "servers", "=", "1", "[", "]", "[[", "]]", ".", "\"", "'", "\"\"\"", "\n", "\r\n", "#", ",", "{", "}",
            "allow", "deny", "rules", "\"list_*\"", "é", "\\", "\u{feff}", "\t", " ", "when", "tool", "effect", "\"ask\"", "match",
            "not_match", "under", "host", "pattern", "min", "max", "is", "optional", "true", "limits", "clients", "rate",
            "\"60/min\"", "pins", "[servers.a]\n", "[[servers.a.rules]]\n", "[clients.b.servers.a]\n", "1.5", "nan", "[]",
        ]), 0..40),
    ) {
        if let Err(errors) = Policy::parse(Source { path: "p".to_owned(), text: tokens.concat() }) {
            prop_assert!(!errors.0.is_empty());
            let _ = errors.to_string();
        }
    }

    #[test]
    fn any_span_can_be_rendered(text in "(?s).{0,30}", start in 0..200usize, end in 0..200usize, label in any::<String>()) {
        let source = Source { path: String::new(), text };
        for span in [start..end, start..usize::MAX, usize::MAX..end] {
            let shown = Diagnostic::new(&source, Some(span), label.clone(), label.clone()).with_help(label.clone()).render(false);
            prop_assert!(!shown.contains(|c: char| c.is_control() && c != '\n'));
        }
    }

    #[test]
    fn a_template_permits_exactly_the_read_only_tools(
        offers in vec(("[a-c]{1,2}", vec(("[a-d_./-]{1,3}", any::<bool>(), any::<String>()), 0..8)), 0..4),
    ) {
        let offer = |(name, read_only, summary)| ToolOffer { name: tool(name), read_only, summary };
        let offers: Vec<_> = offers.into_iter().map(|(name, tools)| ServerOffer {
            name: ServerName::new(name).unwrap(),
            tools: tools.into_iter().map(offer).collect::<Vec<_>>(),
        }).collect();
        let text = render_template(&offers);
        let policy = parsed(text.clone());
        let with_others = parsed(text.replace("\n    # \"", "\n    \""));
        for server in &offers {
            for tool in &server.tools {
                let mut same = offers.iter().filter(|other| other.name == server.name).flat_map(|other| &other.tools)
                    .filter(|other| other.name == tool.name);
                prop_assert_eq!(policy.permits(&server.name, &tool.name, None), same.all(|other| other.read_only));
                prop_assert!(with_others.permits(&server.name, &tool.name, None));
            }
        }
    }
}

#[test]
fn a_hostile_summary_stays_a_comment() {
    let summary =
        "Lists issues\"]\nallow = [\"*\"]\r\u{1b}[31m # \u{202e}\u{0}".to_owned() + &"very ".repeat(100_000);
    let github = ServerOffer {
        name: ServerName::new("github").unwrap(),
        tools: vec![
            ToolOffer {
                name: tool("create_issue"),
                read_only: false,
                summary: "Opens an issue.\nNeeds a title.".to_owned(),
            },
            ToolOffer { name: tool("list_issues"), read_only: true, summary },
            ToolOffer { name: tool("get_me"), read_only: true, summary: String::new() },
        ],
    };
    let nothing = ServerOffer { name: ServerName::new("empty").unwrap(), tools: Vec::new() };
    insta::assert_snapshot!(render_template(&[github, nothing]));
}

#[test]
fn tools_over_the_size_limit_are_left_out_and_counted() {
    let summary = "s".repeat(200);
    let offer =
        |n| ToolOffer { name: tool(format!("{n:0>100}")), read_only: n % 2 == 0, summary: summary.clone() };
    let many = |s: &str, count| ServerOffer {
        name: ServerName::new(s).unwrap(),
        tools: (0..count).map(offer).collect(),
    };
    let wide = render_template(&[many("a", 20_000), many("b", 3), many(&"c".repeat(128), 3)]);
    assert!(wide.len() <= TEXT_BYTES_MAX);
    assert!(wide.contains("more tools of a did not fit"), "{}", &wide[wide.len() - 500..]);
    parsed(wide);

    let short = |n| ToolOffer { name: tool(format!("{n}")), read_only: true, summary: String::new() };
    let tools = (0..PATTERNS_MAX + 5).map(short).collect();
    let long = render_template(&[ServerOffer { name: server(), tools }]);
    assert!(long.ends_with("# 5 more tools of s did not fit into a policy.\n"));
    assert!(parsed(long).permits(&server(), &tool("1"), None));
}
