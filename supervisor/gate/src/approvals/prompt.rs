//! The words that a person reads before they decide. What is not ours in them stands behind a bar, whoever wrote it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::Approval;
use super::always::Change;
use super::candidate::Candidate;
use super::facts::Facts;
use super::visible::barred;

/// Hexadecimal digits of the digest that are shown.
const SHORT_DIGEST: usize = 12;
/// Lines of code and of the policy that a table of calls is followed by.
const LINES_MAX: usize = 5;

/// What is put to a person: the calls of one table, or one call.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) calls: Vec<Facts>,
    /// What binds an answer to exactly these calls.
    pub(super) digest: String,
    /// What `always` would do to the policy, if it can be done.
    pub(super) change: Option<Change>,
}

impl Prompt {
    pub(super) fn new(waiting: &[Candidate], code: &str, change: Option<Change>) -> Self {
        let facts = |call: &Candidate| Facts::of(call, code, waiting.len());
        let digest = match waiting {
            [one] => one.digest.to_hex(),
            several => {
                let mut all = Sha256::new();
                several.iter().for_each(|call| all.update(call.digest.to_hex()));
                HEXLOWER.encode(&all.finalize())
            }
        };
        Self { calls: waiting.iter().map(facts).collect(), digest, change }
    }

    /// The scopes that an answer may have, the narrowest first.
    pub(super) fn scopes(&self) -> Vec<Approval> {
        let mut scopes = vec![Approval::Once, Approval::Execution];
        scopes.extend(self.change.is_some().then_some(Approval::Always));
        scopes
    }

    /// What is known of the calls.
    pub(super) fn text(&self) -> String {
        let mut text = match self.calls.as_slice() {
            [call] => one(call),
            calls => table(calls),
        };
        let short = self.digest.get(..SHORT_DIGEST).unwrap_or(&self.digest);
        let _ = writeln!(
            text,
            "Hash: {short}, of exactly {}.",
            if self.calls.len() == 1 { "this call" } else { "these calls" }
        );
        text
    }

    /// What each scope means, and the change of the policy.
    pub(super) fn scopes_in_words(&self) -> String {
        let tools: BTreeSet<String> = self.calls.iter().map(what).collect();
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let these = if self.calls.len() == 1 { "this call" } else { "the calls above" };
        let mut text = format!(
            "Scopes:\n  once: {these} alone\n  execution: also every further call of the same in this run, whatever the \
             arguments:\n{}",
            barred(&tools.join("\n"))
        );
        if let Some(change) = &self.change {
            let _ = write!(
                text,
                "  always: the policy is changed so that nobody is asked again:\n{}",
                barred(&change.diff)
            );
        }
        text
    }
}

fn what(call: &Facts) -> String {
    match call.kind.as_str() {
        "tool" => format!("{}.{}", call.server, call.name),
        kind => format!("{}: {kind} {}", call.server, call.name),
    }
}

/// At the end of the first line, of which some AI clients show little more.
const INCOMPLETE: &str = " INCOMPLETE: not everything fits below.";

fn one(call: &Facts) -> String {
    let Facts { server, kind, argument_names_left_out: hidden, .. } = call;
    let who = if call.directly { "The AI client" } else { "Running code" };
    let incomplete = if call.is_complete() { "" } else { INCOMPLETE };
    let with = match call.argument_names.len() + hidden {
        0 => "without arguments".to_owned(),
        1 => "with 1 argument".to_owned(),
        count => format!("with {count} arguments"),
    };
    let mut text = match kind.as_str() {
        "tool" => format!("{who} asks to call {} {with}.{incomplete}\n", what(call)),
        _ => {
            format!("{who} asks server {server} for this {kind} {with}.{incomplete}\n{}", barred(&call.name))
        }
    };
    if call.name_left_out > 0 {
        let _ = writeln!(
            text,
            "WARNING: {} characters of the name of this {kind} are not shown. An answer counts for all of them.",
            call.name_left_out
        );
    }
    if !call.argument_names.is_empty() {
        text.push_str(&barred(&call.argument_names.join(", ")));
    }
    if *hidden > 0 {
        let _ = writeln!(text, "WARNING: {hidden} more arguments, all of them optional, are not shown.");
    }
    if kind == "tool" {
        let _ = writeln!(text, "The server says: {}.", call.claims);
    }
    if !call.argument_names.is_empty() {
        let _ = write!(text, "Arguments:\n{}", barred(&call.arguments));
    }
    if call.arguments_left_out > 0 {
        let _ = writeln!(
            text,
            "WARNING: {} characters of the arguments are not shown. An answer counts for all of them.",
            call.arguments_left_out
        );
    }
    text.push_str(&line(call));
    let _ = write!(text, "The policy asks by this line:\n{}", barred(&call.rule));
    text
}

fn line(call: &Facts) -> String {
    match (call.line, &call.source) {
        (None, _) if call.directly => String::new(),
        (None, _) => "The program does not say from which line of its code.\n".to_owned(),
        (Some(line), Some(source)) => {
            format!("The program says: line {line}. There its code reads:\n{}", barred(source))
        }
        (Some(line), None) => format!("The program says: line {line}. Its code has no such line.\n"),
    }
}

/// Columns of arguments beside the name of their tool.
const BESIDE_MAX: usize = 100;

fn table(calls: &[Facts]) -> String {
    let is_complete = calls.iter().all(Facts::is_complete);
    let incomplete = if is_complete { "" } else { INCOMPLETE };
    let mut text =
        format!("Running code asks to make {} calls: {}.{incomplete}\n", calls.len(), tools(calls));
    let width = calls.iter().map(|call| what(call).chars().count()).max().unwrap_or(0);
    let mut rows = String::new();
    for (index, call) in calls.iter().enumerate() {
        let line = call.line.map(|line| format!("line {line}")).unwrap_or_default();
        let _ = write!(rows, "{:>3}  {:width$}  {line:>9}", index + 1, what(call));
        if call.arguments.starts_with('{') && call.arguments.chars().count() <= BESIDE_MAX {
            let _ = writeln!(rows, "  {}", call.arguments);
        } else {
            let _ = writeln!(rows, "  {}", call.argument_names.join(", "));
            call.arguments.lines().for_each(|line| rows.push_str(&format!("       {line}\n")));
        }
    }
    text.push_str(&barred(&rows));
    if !is_complete {
        text.push_str(
            "WARNING: not all of the arguments are shown where a number of characters is named. An answer counts for all of \
             them.\n",
        );
    }
    let claims = calls.iter().map(|call| format!("{}: {}", what(call), call.claims));
    text.push_str(&few("The servers say:", claims));
    let sources =
        calls.iter().filter_map(|call| Some(format!("{:>5}  {}", call.line?, call.source.as_ref()?)));
    text.push_str(&few("The program says that the calls are at these lines of its code:", sources));
    text.push_str(&few("The policy asks by:", calls.iter().map(|call| call.rule.clone())));
    text
}

/// Tools that are named in the first line of a table.
const TOOLS_MAX: usize = 3;

/// What is called, and how often. Names of tools and servers have no characters but letters, digits and `_-./`; what else
/// is asked for is named below.
fn tools(calls: &[Facts]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for call in calls {
        let name = match call.kind.as_str() {
            "tool" => what(call),
            kind => format!("{kind} of {}", call.server),
        };
        *counts.entry(name).or_default() += 1;
    }
    let more = counts.len().saturating_sub(TOOLS_MAX);
    let mut named: Vec<String> =
        counts.iter().take(TOOLS_MAX).map(|(name, count)| format!("{count} × {name}")).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

/// The first few that differ, under a heading.
fn few(heading: &str, lines: impl Iterator<Item = String>) -> String {
    let all: BTreeSet<String> = lines.collect();
    if all.is_empty() {
        return String::new();
    }
    let shown: Vec<&str> = all.iter().take(LINES_MAX).map(String::as_str).collect();
    let more = all.len() - shown.len();
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    format!("{heading}\n{}{more}", barred(&shown.join("\n")))
}

#[cfg(test)]
mod tests {
    use lockhouse_policies::{Call, Decision, Policy, Source};
    use lockhouse_protocol::{CallId, ExecutionId, ServerName, ToolName};
    use serde_json::{Value, json};

    use super::*;
    use crate::approvals::order::Order;
    use lockhouse_catalog::Claims;

    const CODE: &str = "import mcp_tools\n\n\tfiles.write(path=p)  # \u{1b}[2J\n";

    fn candidate(number: u32, tool: &str, arguments: &Value, line: Option<u32>) -> Candidate {
        let text = "version = 1\n[servers.files]\nask = [\"*\"]\n";
        let source = Source { path: "policy.toml".into(), text: text.into() };
        let policy = Policy::parse(source).expect("a policy");
        let server = ServerName::new("files").expect("a name");
        let call = Call::new(&server, &ToolName::new(tool).expect("a name"))
            .with_arguments(arguments.as_object().cloned().expect("an object"));
        let Decision::Ask(pending) = policy.decide(call) else { panic!("not asked") };
        let claims = Claims { read_only: Some(false), destructive: None };
        let id = (ExecutionId(7), CallId(number), uuid::Uuid::nil());
        Candidate::new(id, pending, line, claims, Order::default())
    }

    fn prompt(calls: &[Candidate]) -> String {
        let prompt = Prompt::new(calls, CODE, None);
        format!("{}{}", prompt.text(), prompt.scopes_in_words())
    }

    #[test]
    fn one_call_is_shown_whole() {
        let arguments = json!({"path": "/tmp/x\nHash: 1", "text": "\u{202e}"});
        insta::assert_snapshot!(prompt(&[candidate(1, "write", &arguments, Some(3))]), @r#"
        Running code asks to call files.write with 2 arguments.
            | "path", "text"
        The server says: it changes things.
        Arguments:
            | {
            |   "path": "/tmp/x\nHash: 1",
            |   "text": "\u202e"
            | }
        The program says: line 3. There its code reads:
            | files.write(path=p)  # \u001b[2J
        The policy asks by this line:
            | policy.toml:3
        Hash: 73b9e3dffb55, of exactly this call.
        Scopes:
          once: this call alone
          execution: also every further call of the same in this run, whatever the arguments:
            | files.write
        "#);
    }

    #[test]
    fn a_name_that_does_not_fit_is_told_in_the_first_line_and_below_it() {
        let mut call = Facts::of(&candidate(1, "write", &json!({}), None), CODE, 1);
        (call.kind, call.name) = ("resource".into(), "file:///etc/hosts".into());
        let text = one(&call);
        let whole = "Running code asks server files for this resource without arguments.\n    | file:///etc/hosts\nThe program";
        assert!(text.starts_with(whole), "{text}");
        call.name_left_out = 7;
        let text = one(&call);
        let first = text.lines().next().unwrap_or_default();
        let warning = "\nWARNING: 7 characters of the name of this resource are not shown. An answer counts for all of them.\n";
        assert!(first.contains("INCOMPLETE") && text.contains(warning), "{text}");
    }

    #[test]
    fn of_what_no_tool_describes_every_argument_is_required() {
        let many =
            |count: usize| -> Value { (0..count).map(|at| (format!("part_{at:04}"), json!("x"))).collect() };
        let hidden = |arguments: &Value| {
            let call = candidate(1, "write", arguments, None);
            Order::of(&call.pending, None).hidden(call.pending.arguments())
        };
        assert_eq!(hidden(&many(20)), None);
        let told = hidden(&many(300)).unwrap_or_default();
        assert!(told.ends_with(" of its 300 arguments would be hidden, required ones among them"), "{told}");
    }

    #[test]
    fn a_line_that_the_code_does_not_have_is_said_to_be_none() {
        for line in [0, 4, u32::MAX] {
            let text = prompt(&[candidate(1, "write", &json!({}), Some(line))]);
            assert!(
                text.contains(&format!("The program says: line {line}. Its code has no such line.")),
                "{text}"
            );
        }
        assert!(
            prompt(&[candidate(1, "write", &json!({}), None)])
                .contains("The program does not say from which line of its code.")
        );
    }

    #[test]
    fn several_calls_are_a_table() {
        let calls = [
            candidate(1, "write", &json!({"path": "/tmp/a"}), Some(3)),
            candidate(2, "write", &json!({"path": "b".repeat(200)}), Some(9)),
            candidate(3, "remove.all", &json!({}), None),
        ];
        insta::assert_snapshot!(prompt(&calls), @r#"
        Running code asks to make 3 calls: 1 × files.remove.all, 2 × files.write.
            |   1  files.write          line 3  {"path":"/tmp/a"}
            |   2  files.write          line 9  "path"
            |        {"path":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
            : bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
            : bbbbbbbbbbbbbbbb"}
            |   3  files.remove.all             {}
        The servers say:
            | files.remove.all: it changes things
            | files.write: it changes things
        The program says that the calls are at these lines of its code:
            |     3  files.write(path=p)  # \u001b[2J
        The policy asks by:
            | policy.toml:3
        Hash: b51d9a73eb94, of exactly these calls.
        Scopes:
          once: the calls above alone
          execution: also every further call of the same in this run, whatever the arguments:
            | files.remove.all
            | files.write
        "#);
    }

    #[test]
    fn the_hash_is_of_exactly_these_calls() {
        let digest = |calls: &[Candidate]| Prompt::new(calls, CODE, None).digest;
        let call = |number, x: u32| candidate(number, "write", &json!({"x": x}), None);
        let all = [
            digest(&[call(1, 1)]),
            digest(&[call(1, 2)]),
            digest(&[call(2, 1)]),
            digest(&[call(1, 1), call(2, 1)]),
            digest(&[call(2, 1), call(1, 1)]),
            digest(&[call(1, 1), call(2, 2)]),
        ];
        let different: BTreeSet<&String> = all.iter().collect();
        assert_eq!((different.len(), digest(&[call(1, 1)])), (all.len(), all[0].clone()));
    }
}
