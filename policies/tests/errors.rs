//! Tests of the error messages for invalid policy documents. Each snapshot must say what the user can do.
#![allow(clippy::expect_used, reason = "a test that cannot go on panics")]

use lockhouse_policies::{
    DIAGNOSTICS_MAX, Diagnostic, Diagnostics, PATTERNS_MAX, Policy, RULES_MAX, Source, TEXT_BYTES_MAX,
};

fn errors(text: &str) -> Diagnostics {
    let source = Source { path: "policy.toml".to_owned(), text: text.to_owned() };
    Policy::parse(source).expect_err("the document is valid")
}

fn long_line(before: usize) -> String {
    let tools = |from: usize| (from..from + before).map(|n| format!("\"tool{n}\", ")).collect::<String>();
    format!("version = 1\n[servers.a]\nallow = [{}\"?\", {}]\n", tools(0), tools(5000))
}

const BAD_CONDITIONS: &str = r#"version = 1
[[servers.a.rules]]
tool = "x"
effect = "allow"
[servers.a.rules.when]
a = []
b = 1979-05-27
c = nan
d = {}
e = { min = 1, pattern = "x" }
f = { min = 2, max = 1 }
g = { under = "docs" }
h = { under = ["/a", "/a/../b"] }
i = { host = "https://example.com/" }
j = { host = "*" }
k = { optional = true }
l = { is = "x", optional = "yes" }
m.owner = "acme"
"n..o" = 1
p = [["x"]]
q = { pattern = 1 }
"#;

const BAD_PRESENCE: &str = r#"version = 1
[[servers.a.rules]]
tool = "x"
effect = "allow"
presence = "key"

[[servers.a.rules]]
tool = "y"
effect = "ask"
presence = "none"

[[servers.a.rules]]
tool = "z"
effect = "ask"
presence = 1

[[servers.a.rules]]
tool = "w"
effect = "deny"
presence = "password"
"#;

const EXAMPLES: &str = r#"version = 1
[[servers.a.rules]]
tool = "create_issue"
when = { owner = "acme", path = { under = "/srv" } }
effect = "allow"
match = [{ owner = "acme", path = "/srv/a" }, { owner = "evil", path = "/srv/a" }, { owner = "acme" }, 1]
not_match = [{ owner = "evil" }, { owner = "acme", path = "/srv/../x" }, { owner = "acme", path = "/srv" }, { a = 1979-05-27 }]

[[servers.a.rules]]
tool = "create_issue"
when = { path = { under = "/etc" } }
effect = "deny"
not_match = [{ path = "/srv" }, { path = "relative" }]
"#;

const BAD_LIMITS: &str = r#"version = 1
[servers.a]
rate = "60"
calls_per_execution = 0
argument_bytes_per_execution = "10 MB"
timeout_seconds = 1.5
[servers.a.limits."*_x"]
rate = "0/min"
[servers.a.limits.x]
rate = { calls = 1 }
[servers.a.limits.y]
rate = { calls = 1, per = "1 week", burst = -1, extra = 1 }
[servers.a.limits]
z = 1
[limits]
rate = 5
"#;

macro_rules! rendered {
    ($($name:ident: $text:expr;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(errors($text));
        }
    )*};
}

rendered! {
    an_empty_document: "";
    only_a_comment: "# nothing yet\n";
    not_toml_in_other_ways: "version = 1\n[servers.a\nallow = [list_x]\n[servers.b]\nallow\n[servers.b]\n= 3\n";
    on_a_long_line: &long_line(40);
    on_a_very_long_line: &long_line(4000);
    another_version: "version = 2\nfuture = true\n";
    a_version_in_quotes: "version = \"1\"\n";
    not_toml: "version = 1\n[servers.github]\nallow = [\"list_*\"\ndeny = \"x\n[servers.github]\n";
    a_key_written_twice: "version = 1\n[servers.a]\nallow = [\"x\"]\nallow = [\"y\"]\n";
    a_rule_without_effect: "version = 1\n[servers.github]\nallow = [\"list_*\"]\nask = [\"create_issue\"]\nrate = \"60/min\"\n[[servers.github.rules]]\ntool = \"create_issue\"\n";
    unknown_keys: "version = 1\nserver = {}\nallow = [\"x\"]\n[servers.a]\nalow = [\"x\"]\nstart_timeout_seconds = 60\n";
    values_of_the_wrong_kind: "version = 1\n[servers]\na = [\"x\"]\n[servers.b]\nallow = \"list_*\"\ndeny = [1, [\"y\"]]\n[[servers.c]]\n";
    servers_as_a_list: "version = 1\nservers = [\"github\"]\n";
    bad_patterns: "version = 1\n[servers.a]\nallow = [\n  \"\",\n  \"*_issue\",\n  \"list_**\",\n  \"list issues\",\n  \"löschen\",\n  \"get_?\",\n]\n";
    a_pattern_that_is_too_long: &format!("version = 1\n[servers.a]\nallow = [\"{}\"]\n", "x".repeat(129));
    a_bad_server_name: "version = 1\n[servers.\"git hub\"]\nallow = [\"x\"]\n";
    listed_twice: "version = 1\n[servers.a]\nallow = [\n  \"x\",\n  \"y\",\n  'x',\n]\n";
    never_allowed: "version = 1\n[servers.a]\nallow = [\"delete_x\", \"delete_y*\", \"d*\"]\ndeny = [\"delete_*\"]\n";
    bad_patterns_of_resources_and_prompts: "version = 1\n[servers.a]\nresources = [\"file:///*/x\", \"file:///x\\u0007\", \"\"]\nprompts = \"review_*\"\ndeny = [\"file:///é*\", \"löschen\"]\n";
    resources_never_allowed: "version = 1\n[servers.a]\nresources = [\"file:///docs/*\"]\nprompts = [\"review_*\"]\ndeny = [\"file:*\", \"review_*\"]\n";
    bad_rules: "version = 1\n[servers.a]\nrules = [\n  1,\n  {},\n  { tool = \"a b\", effect = \"permit\" },\n  { tool = \"x\", effect = 1, wen = {} },\n  { tool = \"x\", effect = \"deny\", when = \"a\" },\n]\n[servers.b]\nrules = {}\n";
    bad_conditions: BAD_CONDITIONS;
    bad_presence: BAD_PRESENCE;
    examples_that_do_not_behave: EXAMPLES;
    rules_and_asks_that_never_apply: "version = 1\n[servers.a]\nask = [\"delete_x\"]\ndeny = [\"delete_*\"]\n[[servers.a.rules]]\ntool = \"delete_y*\"\neffect = \"allow\"\n[[servers.a.rules]]\ntool = \"delete_z\"\neffect = \"deny\"\n";
    bad_limits: BAD_LIMITS;
    bad_pins: "version = 1\n[servers.a.pins]\nx = \"sha256:abc\"\n\"y z\" = 1\n\"w*\" = \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"\n";
    bad_clients: "version = 1\n[clients.\"a*b\"]\n[clients.b]\nallow = [\"x\"]\nburst = 1\n[clients.c.servers]\nd = 1\n[clients.d.servers.s]\nalow = []\n[clients]\ne = 1\n\"\\u202e\" = {}\n";
    keys_in_the_wrong_place: "version = 1\nrate = \"1/s\"\nrules = []\n[limits]\nrates = 1\n[servers.a.limits]\nrate = \"1/s\"\n";
    too_long: &"#".repeat(TEXT_BYTES_MAX + 1);
    control_characters: "version = 1\n[servers.a]\nallow = [\"\u{9b}31m\u{202e}\\u001b]0;x\\u0007\"]\n\"\\u001b[2J\" = 1\n";
}

#[test]
fn too_many_patterns_are_refused_once() {
    let many: String = (0..PATTERNS_MAX).map(|n| format!("\"t{n}\",")).collect();
    let fits = format!("version = 1\n[servers.a]\nallow = [{many}]\n");
    assert!(Policy::parse(Source { path: String::new(), text: fits.clone() }).is_ok());
    insta::assert_snapshot!(errors(&format!("{fits}deny = [\n\"x\",\n\"y\"]\n")));
}

#[test]
fn too_many_rules_conditions_and_examples_and_too_long_texts_are_refused() {
    let rule = |rest: &str| format!("[[servers.a.rules]]\ntool = \"x\"\neffect = \"deny\"\n{rest}\n");
    let document = |rules: &str| format!("version = 1\n{rules}");
    let parses = |text: &str| Policy::parse(Source { path: String::new(), text: document(text) }).is_ok();
    let conditions = |count: usize| {
        let all: Vec<_> = (0..count).map(|n| format!("a{n} = 1")).collect();
        rule(&format!("when = {{ {} }}", all.join(", ")))
    };
    let examples = |count: usize| rule(&format!("match = [{}]", "{ a = 1 },".repeat(count)));
    let text = |bytes: usize| rule(&format!("when = {{ a = \"{}\" }}", "x".repeat(bytes)));
    let rows = [
        (text(4096), text(4097), "this text is longer than 4096 bytes"),
        (rule("").repeat(RULES_MAX), rule("").repeat(RULES_MAX + 2), "the policy has more than 5000 rules"),
        (conditions(20), conditions(21), "a rule has at most 20 conditions"),
        (examples(50), examples(51), "`match` has more than 50 examples"),
    ];
    for (fits, too_many, title) in rows {
        assert!(parses(&fits), "{title}");
        let errors = errors(&document(&too_many));
        assert_eq!(errors.0.iter().map(Diagnostic::title).collect::<Vec<_>>(), [title]);
    }
    let values = |count: usize| rule(&format!("when = {{ a = [{}] }}", "1,".repeat(count)));
    assert!(parses(&values(PATTERNS_MAX - 1)));
    let title = "the policy has more than 10000 patterns";
    assert_eq!(errors(&document(&values(PATTERNS_MAX + 5))).0[0].title(), title);
}

#[test]
fn of_very_many_errors_the_first_ones_are_shown() {
    let text = format!("version = 1\n[servers.a]\nallow = [{}]\n", "\"\",".repeat(DIAGNOSTICS_MAX + 7));
    let errors = errors(&text);
    assert_eq!(errors.0.len(), DIAGNOSTICS_MAX + 1);
    insta::assert_snapshot!(errors.0.last().unwrap());
}

#[test]
fn a_document_made_to_exhaust_the_parser_is_refused() {
    for piece in ["[", "{", "a.", "[a.", "[[a]]\n", "a = [", "\"", "\n=", "a={a=", "[a]\n[a]\n"] {
        let text = format!("version = 1\n{}", piece.repeat(100_000));
        assert!(!errors(&text).0.is_empty(), "{piece:?}");
    }
    let deep = format!("version = 1\n{}a = 1\n", "a.".repeat(500_000));
    assert!(!errors(&deep).0.is_empty());
    let deep_header = format!("version = 1\n[{}a]\n", "a.".repeat(500_000));
    assert!(!errors(&deep_header).0.is_empty());
}

#[test]
fn errors_come_in_the_order_of_the_text() {
    let errors = errors("version = 1\n[servers.z]\nallow = [0]\n[servers.a]\nallow = [0]\nzz = 0\naa = 0\n");
    assert_eq!(errors.0.iter().map(|e| e.line().unwrap()).collect::<Vec<_>>(), [3, 5, 6, 7]);
}

#[test]
fn other_files_can_be_reported_on_too() {
    let source = Source { path: "servers\u{1b}[1m.json".to_owned(), text: "{\n\t\"é\": 1\n}".to_owned() };
    let help = "one\ntwo";
    let at = Diagnostic::new(&source, Some(3..7), "a title\r\n", "a label").with_help(help);
    let whole = Diagnostic::new(&source, None, "the file is unreadable", "permission denied");
    insta::assert_snapshot!(Diagnostics(vec![at, whole]));
}

#[test]
fn colour_is_escapes_around_the_same_text() {
    let errors = errors("version = 2");
    let coloured = errors.render(true);
    assert!(coloured.contains("\u{1b}["));
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((text, escape)) = rest.split_once('\u{1b}') {
        plain += text;
        rest = escape.split_once('m').unwrap().1;
    }
    assert_eq!(plain + rest, errors.render(false));
}
