//! Property tests of the precedence of policy statements, for arbitrary policies with rules and arbitrary calls.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::cmp::Reverse;

use lockhouse_policies::{Call, CallTarget, Decision, Effect, Policy, Source, explain};
use lockhouse_protocol::{ServerName, ToolName};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A generated policy rule, with conditions on the arguments `a`, `b` and `c`.
#[derive(Clone, Debug)]
struct Rule {
    tool: String,
    when: Vec<(String, &'static str)>,
    effect: &'static str,
}

impl Rule {
    fn text(&self) -> String {
        let when: Vec<_> =
            self.when.iter().map(|(argument, condition)| format!("{argument} = {condition}")).collect();
        let Self { tool, effect, .. } = self;
        format!(
            "[[servers.s.rules]]\ntool = {tool:?}\nwhen = {{ {} }}\neffect = \"{effect}\"\n",
            when.join(", ")
        )
    }
}

#[derive(Clone, Debug)]
struct Document {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
    rules: Vec<Rule>,
}

impl Document {
    /// Parses the generated policy document. Returns `None` if the parser rejects it because `deny` covers
    /// another entry or rule, which could then never apply.
    fn parse(&self) -> Option<Policy> {
        let Self { allow, ask, deny, rules } = self;
        let rules: String = rules.iter().map(Rule::text).collect();
        let text =
            format!("version = 1\n[servers.s]\nallow = {allow:?}\nask = {ask:?}\ndeny = {deny:?}\n{rules}");
        match Policy::parse(Source { path: "p".to_owned(), text }) {
            Ok(policy) => Some(policy),
            Err(errors) => {
                let expected = |title: &str| title.contains("can never");
                assert!(errors.0.iter().all(|error| expected(error.title())), "{errors}");
                None
            }
        }
    }
}

fn pattern() -> impl Strategy<Value = String> {
    "[ab]{0,3}\\*|[ab]{1,3}"
}

fn patterns(most: usize) -> impl Strategy<Value = Vec<String>> {
    btree_set(pattern(), 0..=most).prop_map(|set| set.into_iter().collect())
}

fn rule_of(conditions: Vec<&'static str>) -> impl Strategy<Value = Rule> {
    let when = btree_map("[abc]", prop::sample::select(conditions), 0..=3);
    let effect = prop::sample::select(vec!["allow", "ask", "deny"]);
    (pattern(), when, effect).prop_map(|(tool, when, effect)| Rule {
        tool,
        when: when.into_iter().collect(),
        effect,
    })
}

fn any_rule() -> impl Strategy<Value = Rule> {
    rule_of(vec![
        r#""x""#,
        r#"["x", 1]"#,
        "{ min = 1 }",
        r#"{ pattern = "x*" }"#,
        r#"{ under = "/srv" }"#,
        r#"{ host = "h.example" }"#,
        r#"{ is = "y", optional = true }"#,
    ])
}

fn document() -> impl Strategy<Value = Document> {
    (patterns(4), patterns(3), patterns(1), vec(any_rule(), 0..5))
        .prop_map(|(allow, ask, deny, rules)| Document { allow, ask, deny, rules })
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop::sample::select(vec![
        json!("x"),
        json!("y"),
        json!(1),
        json!(null),
        json!([]),
        json!(["x", "y"]),
        json!(["x", 1]),
        json!("/srv/a"),
        json!("/srv/../a"),
        json!("https://h.example/"),
        json!({"x": "y"}),
    ]);
    btree_map("[abc]", value, 0..=3).prop_map(|map| map.into_iter().collect())
}

fn call(policy: &Policy, tool: &str, arguments: &Map<String, Value>) -> Call {
    let server = ServerName::new("s").unwrap();
    let mut call = Call::new(&server, &ToolName::new(tool).unwrap()).with_arguments(arguments.clone());
    call.resolved_paths =
        policy.paths_to_resolve(&call).into_iter().map(|path| (path.clone(), path)).collect();
    call
}

fn effect(policy: &Policy, tool: &str, arguments: &Map<String, Value>) -> Effect {
    let explained = explain(policy, &call(policy, tool, arguments));
    let (server, name) = (ServerName::new("s").unwrap(), ToolName::new(tool).unwrap());
    let permits = policy.permits(&server, &name, None);
    let asks = policy.may_require_approval(&server, &name, None);
    let certain = policy.certain_effect(&server, &CallTarget::from(&name), None);
    let (effect, place) = match policy.decide(call(policy, tool, arguments)) {
        Decision::Allow(permitted) => (Effect::Allow, Some(permitted.rule().clone())),
        Decision::Ask(pending) => (Effect::Ask, Some(pending.rule().clone())),
        Decision::Deny(denial) => (Effect::Deny, denial.location),
    };
    assert_eq!((explained.effect, &explained.deciding.location), (effect, &place), "{explained}");
    assert!(permits || effect == Effect::Deny, "{explained}");
    assert!(asks || effect != Effect::Ask, "{explained}");
    assert!(certain.is_none_or(|certain| certain == effect), "{explained}");
    effect
}

/// Whether the policy pattern matches the name, by an implementation that is independent of the policy crate.
fn matches_name(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

fn named(effect: &str) -> Effect {
    match effect {
        "allow" => Effect::Allow,
        "ask" => Effect::Ask,
        _ => Effect::Deny,
    }
}

/// Returns the effect that the policy `document` must have on a call of `tool`, by an implementation that is
/// independent of the policy crate. Each condition of the document must compare an argument with one string.
fn expected(document: &Document, tool: &str, arguments: &Map<String, Value>) -> Effect {
    if document.deny.iter().any(|pattern| matches_name(pattern, tool)) {
        return Effect::Deny;
    }
    let exactness = |pattern: &str| (!pattern.ends_with('*'), pattern.len());
    let is_met = |(argument, condition): &(String, &str)| {
        arguments.get(argument).and_then(Value::as_str) == Some(condition.trim_matches('"'))
    };
    let applying =
        document.rules.iter().filter(|rule| matches_name(&rule.tool, tool) && rule.when.iter().all(is_met));
    let best = applying.max_by_key(|rule| (exactness(&rule.tool), rule.when.len(), named(rule.effect)));
    if let Some(rule) = best {
        return named(rule.effect);
    }
    let lists = [(&document.allow, Effect::Allow), (&document.ask, Effect::Ask)];
    let listed =
        lists.into_iter().flat_map(|(list, effect)| list.iter().map(move |pattern| (pattern, effect)));
    let best = listed.filter(|(pattern, _)| matches_name(pattern, tool)).min_by_key(|(pattern, effect)| {
        let (exact, length) = exactness(pattern);
        Reverse((exact, length, *effect))
    });
    best.map_or(Effect::Deny, |(_, effect)| effect)
}

/// Returns the components of a path as a lenient program would read them. Escapes and characters that
/// resemble `.` or `/` are decoded, and `..` removes the component before it. This implementation is
/// independent of the policy crate.
fn normal(path: &str) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    let escapes = [("%2e", "."), ("%u002e", "."), ("%2f", "/")];
    let path = escapes.iter().fold(path.to_owned(), |path, (escape, decoded)| path.replace(escape, decoded));
    let path: String = path
        .chars()
        .filter_map(|c| match c {
            '\u{200b}' | '\u{feff}' | '\u{301}' => None,
            '．' | '․' | '。' => Some('.'),
            '／' | '⁄' | '∕' | '⧸' | '＼' | '\\' => Some('/'),
            other => Some(other),
        })
        .collect();
    for part in path.replace('‥', "..").split('/') {
        match part.trim() {
            "" | "." => {}
            ".." => _ = folders.pop(),
            part => folders.push(part.to_owned()),
        }
    }
    folders
}

fn path() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "/",
        "/",
        "/srv",
        "/srv/docs",
        "docs",
        "docs2",
        "..",
        ".",
        "%2e",
        "%2f",
        "\\",
        "etc",
        " ",
        "//",
        "a",
        "~",
        "\u{0}",
        "%u002e",
        "．",
        "․",
        "。",
        "‥",
        "／",
        "⁄",
        "∕",
        "⧸",
        "＼",
        "\u{200b}",
        "\u{feff}",
        "\u{301}",
    ]);
    let free = vec(parts.clone(), 0..8).prop_map(|parts| parts.concat());
    let inside = vec(parts, 0..6).prop_map(|parts| format!("/srv/docs/{}", parts.concat()));
    prop_oneof![free, inside]
}

/// Whether the policy `text` allows a call of the tool `t` with the path `path`. `end` is the same path with
/// its symbolic links resolved.
fn allows_path(text: &str, path: &str, end: &str) -> bool {
    let policy = Policy::parse(Source { path: "p".to_owned(), text: text.to_owned() }).unwrap();
    let arguments = json!({ "path": path }).as_object().cloned().unwrap();
    let mut call = call(&policy, "t", &arguments);
    call.resolved_paths.insert(path.to_owned(), end.to_owned());
    matches!(policy.decide(call), Decision::Allow(_))
}

proptest! {
    #[test]
    fn the_most_specific_pattern_counts(
        document in (patterns(4), patterns(3), patterns(1), vec(rule_of(vec![r#""x""#, r#""y""#]), 0..6))
            .prop_map(|(allow, ask, deny, rules)| Document { allow, ask, deny, rules }),
        tool in "[ab]{1,4}",
        arguments in btree_map("[abc]", prop::sample::select(vec![json!("x"), json!("y")]), 0..=3),
    ) {
        let Some(policy) = document.parse() else { return Ok(()) };
        let arguments = arguments.into_iter().collect();
        prop_assert_eq!(effect(&policy, &tool, &arguments), expected(&document, &tool, &arguments));
    }

    #[test]
    fn an_added_deny_never_allows_more(
        document in document(), entry in pattern(), rule in any_rule(), tool in "[ab]{1,4}", arguments in arguments(),
    ) {
        let Some(policy) = document.parse() else { return Ok(()) };
        let before = effect(&policy, &tool, &arguments);
        let mut with_rule = document.clone();
        with_rule.rules.push(Rule { effect: "deny", ..rule });
        let with_rule = with_rule.parse().unwrap();
        prop_assert!(effect(&with_rule, &tool, &arguments) >= before);
        let mut with_entry = document;
        with_entry.deny.push(entry);
        with_entry.deny.dedup();
        if let Some(with_entry) = with_entry.parse() {
            prop_assert!(effect(&with_entry, &tool, &arguments) >= before);
        }
    }

    #[test]
    fn the_strictest_of_two_layers_counts(
        one in document(), other in document(), tool in "[ab]{1,4}", arguments in arguments(),
    ) {
        let (Some(one), Some(other)) = (one.parse(), other.parse()) else { return Ok(()) };
        let both = one.clone().restricted_by(other.clone());
        let strictest = effect(&one, &tool, &arguments).max(effect(&other, &tool, &arguments));
        prop_assert_eq!(effect(&both, &tool, &arguments), strictest);
        prop_assert_eq!(effect(&other.restricted_by(one), &tool, &arguments), strictest);
    }

    #[test]
    fn no_allowed_path_leaves_its_folder(path in path(), end in path()) {
        let text = r#"version = 1
            servers.s.rules = [{ tool = "t", when = { path = { under = "/srv/docs" } }, effect = "allow" }]"#;
        // The policy compares resolved paths with the resolved folder.
        prop_assume!(path != "/srv/docs");
        if allows_path(text, &path, &end) {
            for path in [path, end] {
                prop_assert!(path.starts_with('/') && normal(&path).starts_with(&["srv".to_owned(), "docs".to_owned()]));
            }
        }
    }

    #[test]
    fn no_path_below_a_denied_folder_is_allowed(path in path(), end in path()) {
        let text = r#"version = 1
            [servers.s]
            allow = ["t"]
            rules = [{ tool = "t", when = { path = { under = "/srv/docs" } }, effect = "deny" }]"#;
        // The policy compares resolved paths with the resolved folder. In the path that the kernel has resolved, a combining
        // character makes the name of another folder.
        prop_assume!(path != "/srv/docs" && !end.contains('\u{301}'));
        if allows_path(text, &path, &end) {
            for path in [path, end] {
                prop_assert!(!normal(&path).starts_with(&["srv".to_owned(), "docs".to_owned()]), "{path}");
            }
        }
    }
}
