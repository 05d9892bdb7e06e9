//! Renders the text of approval prompts. Each line of text that is not Lockhouse's own, such as arguments, begins with
//! a bar.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use data_encoding::HEXLOWER;
use lockhouse_messages::{ApprovalQuestion, CallSummary, Presence, RequiredApprovers};
use lockhouse_policies::{ApprovalRequirement, RulePresence};
use lockhouse_run_channel::RunChannel;
use sha2::{Digest, Sha256};

use super::Approval;
use super::approval_request::ApprovalRequest;
use super::approver::Eligibility;
use super::call_summary::summarize;
use super::policy_change::PolicyChange;
use super::presence::level_of_rule;
use super::untrusted_text::prefix_lines;

/// Number of hexadecimal digits of a digest that a prompt shows.
const SHORT_DIGEST: usize = 12;
/// Maximum number of lines that a prompt for several calls shows of each of three lists: the lines of code that
/// make the calls, the policy rules that require approval, and what the servers claim about their tools.
const LINES_MAX: usize = 5;

/// The approval prompt for one call, or for several calls in a table.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) calls: Vec<CallSummary>,
    /// The digest of the calls. The answer of a watcher must contain the digest, so that the answer applies to
    /// exactly these calls.
    pub(super) digest: String,
    /// The change of the policy that the scope `always` makes; `None` if this scope is not offered.
    pub(super) change: Option<PolicyChange>,
    /// What an answer must prove that approves the calls.
    pub(super) presence: Presence,
    /// What the rules for the calls require together.
    pub(super) requirement: ApprovalRequirement,
}

impl Prompt {
    /// `presence` is what the configuration requires of each approval. The rules for the calls can raise it.
    pub(super) fn new(
        waiting: &[ApprovalRequest],
        code: &str,
        change: Option<PolicyChange>,
        presence: Presence,
    ) -> Self {
        let facts = |call: &ApprovalRequest| summarize(call, code, waiting.len());
        let digest = match waiting {
            [one] => one.digest.to_hex(),
            several => {
                let mut all = Sha256::new();
                several.iter().for_each(|call| all.update(call.digest.to_hex()));
                HEXLOWER.encode(&all.finalize())
            }
        };
        let each = waiting.iter().map(|call| call.pending.requirement());
        let requirement = each.fold(ApprovalRequirement::default(), ApprovalRequirement::and);
        let presence = requirement.presence.map_or(Presence::None, level_of_rule).max(presence);
        Self { calls: waiting.iter().map(facts).collect(), digest, change, presence, requirement }
    }

    /// Returns the question that watchers get. The queue numbers it.
    pub(super) fn to_question(
        &self,
        channel: &RunChannel,
        wait: Duration,
        eligibility: &Eligibility,
        roles: Vec<Vec<String>>,
    ) -> ApprovalQuestion {
        let ApprovalRequirement { approvers, not_requester, .. } = self.requirement;
        let required = (approvers > 1 || not_requester).then(|| RequiredApprovers {
            people: approvers,
            not_requester,
            approved_by: eligibility.approved_by(),
        });
        ApprovalQuestion {
            id: 0,
            digest: self.digest.clone(),
            execution: channel.execution().to_string(),
            client: channel.client().map(|client| client.as_str().to_owned()),
            seconds: wait.as_secs_f64(),
            text: self.text() + &eligibility.text(),
            scopes_text: self.scopes_text(),
            scopes: self.scopes(),
            calls: self.calls.clone(),
            diff: self.change.as_ref().map(|change| change.diff.clone()),
            presence: self.presence,
            required,
            roles,
        }
    }

    /// Returns what an approval satisfies, if it is given. What the configuration requires counts as if a rule did.
    pub(super) fn satisfied(&self) -> ApprovalRequirement {
        let presence = match self.presence {
            Presence::None => None,
            Presence::Password => Some(RulePresence::Password),
            Presence::Key => Some(RulePresence::Key),
        };
        ApprovalRequirement { presence, ..self.requirement }
    }

    /// Returns the scopes that an answer may choose, the narrowest first.
    pub(super) fn scopes(&self) -> Vec<Approval> {
        let mut scopes = vec![Approval::Once, Approval::Execution];
        scopes.extend(self.change.is_some().then_some(Approval::Always));
        scopes
    }

    /// Returns the text that describes the calls of the prompt for a person.
    pub(super) fn text(&self) -> String {
        let mut text = match self.calls.as_slice() {
            [call] => single_call_text(call),
            calls => table_text(calls),
        };
        let short = self.digest.get(..SHORT_DIGEST).unwrap_or(&self.digest);
        let _ = writeln!(
            text,
            "Hash: {short}, of exactly {}.",
            if self.calls.len() == 1 { "this call" } else { "these calls" }
        );
        text
    }

    /// Returns the text that explains which calls each scope approves. The text contains the policy change of the
    /// scope `always` if this scope is offered.
    pub(super) fn scopes_text(&self) -> String {
        let tools: BTreeSet<String> = self.calls.iter().map(call_title).collect();
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let these = if self.calls.len() == 1 { "this call" } else { "the calls above" };
        let mut text = format!(
            "Scopes:\n  once: {these} alone\n  execution: also every further call of these tools in this run, with any \
             arguments:\n{}",
            prefix_lines(&tools.join("\n"))
        );
        if let Some(change) = &self.change {
            let _ = write!(
                text,
                "  always: the policy is changed so that nobody is asked again:\n{}",
                prefix_lines(&change.diff)
            );
        }
        text
    }
}

/// Returns the name of the called item with that of its server, such as `github.create_issue`. A name with spaces or
/// letters of other languages is quoted, so that it cannot go on as a sentence of Lockhouse.
fn call_title(call: &CallSummary) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    match call.kind.as_str() {
        "tool" if call.name.bytes().all(is_plain) => format!("{}.{}", call.server, call.name),
        "tool" => format!("{}.{:?}", call.server, call.name),
        kind => format!("{}: {kind} {}", call.server, call.name),
    }
}

/// The warning that a prompt does not show the whole name and all arguments of each call. It is at the end of the
/// first line, since some AI clients show little more of a message than its first line.
const INCOMPLETE: &str = " INCOMPLETE: not everything fits below.";

/// Returns the text of a prompt for one call.
fn single_call_text(call: &CallSummary) -> String {
    let CallSummary { server, kind, argument_names_left_out: hidden, .. } = call;
    let who = if call.directly { "The AI client" } else { "Running code" };
    let incomplete = if call.is_complete() { "" } else { INCOMPLETE };
    let with = match call.argument_names.len() + hidden {
        0 => "without arguments".to_owned(),
        1 => "with 1 argument".to_owned(),
        count => format!("with {count} arguments"),
    };
    let mut text = match kind.as_str() {
        "tool" => format!("{who} asks to call {} {with}.{incomplete}\n", call_title(call)),
        _ => {
            format!(
                "{who} asks server {server} for this {kind} {with}.{incomplete}\n{}",
                prefix_lines(&call.name)
            )
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
        text.push_str(&prefix_lines(&call.overview));
    }
    if *hidden > 0 {
        let _ = writeln!(text, "WARNING: {hidden} more arguments, all of them optional, are not shown.");
    }
    if kind == "tool" {
        let _ = writeln!(text, "The server says: {}.", call.claims);
    }
    if !call.argument_names.is_empty() {
        let _ = write!(text, "Arguments:\n{}", prefix_lines(&call.arguments));
    }
    if call.arguments_left_out > 0 {
        let _ = writeln!(
            text,
            "WARNING: {} characters of the arguments are not shown. An answer counts for all of them.",
            call.arguments_left_out
        );
    }
    if call.content_left_out > 0 {
        let _ = writeln!(
            text,
            "WARNING: {} bytes of the file between its beginning and its end are not shown. An answer counts for all of them, \
             by their SHA-256.",
            call.content_left_out
        );
    }
    text.push_str(&source_line_text(call));
    let _ = write!(text, "The policy asks by this line:\n{}", prefix_lines(&call.rule));
    text
}

/// Returns the line of the program that makes the call, as text for the prompt.
fn source_line_text(call: &CallSummary) -> String {
    match (call.line, &call.source) {
        (None, _) if call.directly => String::new(),
        (None, _) => "The program does not say from which line of its code.\n".to_owned(),
        (Some(line), Some(source)) => {
            format!(
                "The program says: line {line}. There its code, whose comments may be wrong, reads:\n{}",
                prefix_lines(source)
            )
        }
        (Some(line), None) => format!("The program says: line {line}. Its code has no such line.\n"),
    }
}

/// Maximum length of a call's arguments, in characters, at which a prompt for several calls shows them on the line
/// with the tool's name. Longer arguments are shown below that line.
const BESIDE_MAX: usize = 100;

/// Returns the text of a prompt for several calls.
fn table_text(calls: &[CallSummary]) -> String {
    let is_complete = calls.iter().all(CallSummary::is_complete);
    let incomplete = if is_complete { "" } else { INCOMPLETE };
    let mut text = format!(
        "Running code asks to make {} calls: {}.{incomplete}\n",
        calls.len(),
        tool_counts_text(calls)
    );
    let width = calls.iter().map(|call| call_title(call).chars().count()).max().unwrap_or(0);
    let mut rows = String::new();
    for (index, call) in calls.iter().enumerate() {
        let line = call.line.map(|line| format!("line {line}")).unwrap_or_default();
        let _ = write!(rows, "{:>3}  {:width$}  {line:>9}", index + 1, call_title(call));
        if call.arguments.starts_with('{') && call.arguments.chars().count() <= BESIDE_MAX {
            let _ = writeln!(rows, "  {}", call.arguments);
        } else {
            let _ = writeln!(rows, "  {}", call.argument_names.join(", "));
            call.arguments.lines().for_each(|line| rows.push_str(&format!("       {line}\n")));
        }
    }
    text.push_str(&prefix_lines(&rows));
    if !is_complete {
        text.push_str(
            "WARNING: not all of the arguments are shown where a number of characters is named. An answer counts for all of \
             them.\n",
        );
    }
    let claims = calls.iter().map(|call| format!("{}: {}", call_title(call), call.claims));
    text.push_str(&sample_text("The servers say:", claims));
    let sources =
        calls.iter().filter_map(|call| Some(format!("{:>5}  {}", call.line?, call.source.as_ref()?)));
    text.push_str(&sample_text(
        "The program says that the calls are at these lines of its code, whose comments may be wrong:",
        sources,
    ));
    text.push_str(&sample_text("The policy asks by:", calls.iter().map(|call| call.rule.clone())));
    text
}

/// Maximum number of different tools, and of other kinds of items, that the first line of a prompt for several
/// calls names.
const TOOLS_MAX: usize = 3;

/// Returns text for the first line of a prompt for several calls: the name of each called tool, and for other
/// items only the kind and the server, each with the number of its calls. The text is safe to display:
/// other names than those of letters, digits and `_-./` are quoted.
fn tool_counts_text(calls: &[CallSummary]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for call in calls {
        let name = match call.kind.as_str() {
            "tool" => call_title(call),
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

/// Returns the heading with at most [`LINES_MAX`] distinct lines of `lines` below it, and the number of further
/// lines. Returns an empty text if there are no lines.
fn sample_text(heading: &str, lines: impl Iterator<Item = String>) -> String {
    let all: BTreeSet<String> = lines.collect();
    if all.is_empty() {
        return String::new();
    }
    let shown: Vec<&str> = all.iter().take(LINES_MAX).map(String::as_str).collect();
    let more = all.len() - shown.len();
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    format!("{heading}\n{}{more}", prefix_lines(&shown.join("\n")))
}

#[cfg(test)]
mod tests {
    use lockhouse_policies::{Call, Decision, Policy, Source};
    use lockhouse_protocol::{CallId, ExecutionId, ServerName, ToolName};
    use serde_json::{Value, json};

    use super::*;
    use crate::argument_order::ArgumentOrder;
    use lockhouse_catalog::ToolHints;

    const CODE: &str = "import mcp_tools\n\n\tfiles.write(path=p)  # \u{1b}[2J\n";

    fn candidate(number: u32, tool: &str, arguments: &Value, line: Option<u32>) -> ApprovalRequest {
        let text = "version = 1\n[servers.files]\nask = [\"*\"]\n";
        let source = Source { path: "policy.toml".into(), text: text.into() };
        let policy = Policy::parse(source).expect("a policy");
        let server = ServerName::new("files").expect("a name");
        let call = Call::new(&server, &ToolName::new(tool).expect("a name"))
            .with_arguments(arguments.as_object().cloned().expect("an object"));
        let Decision::Ask(pending) = policy.decide(call) else { panic!("not asked") };
        let (execution, call, id) = (ExecutionId(7), CallId(number), uuid::Uuid::nil());
        let mut request = ApprovalRequest::new(execution, call, id, pending, line, 0, None);
        request.claims = ToolHints { read_only: Some(false), destructive: None };
        request
    }

    fn prompt(calls: &[ApprovalRequest]) -> String {
        let prompt = Prompt::new(calls, CODE, None, Presence::None);
        format!("{}{}", prompt.text(), prompt.scopes_text())
    }

    #[test]
    fn a_single_call_is_shown_completely() {
        let arguments = json!({"path": "/tmp/x\nHash: 1", "text": "\u{202e}"});
        insta::assert_snapshot!(prompt(&[candidate(1, "write", &arguments, Some(3))]), @r#"
        Running code asks to call files.write with 2 arguments.
            | "path": "/tmp/x\nHash: 1", "text": "\u202e"
        The server says: it changes things.
        Arguments:
            | {
            |   "path": "/tmp/x\nHash: 1",
            |   "text": "\u202e"
            | }
        The program says: line 3. There its code, whose comments may be wrong, reads:
            | files.write(path=p)  # \u001b[2J
        The policy asks by this line:
            | policy.toml:3
        Hash: 73b9e3dffb55, of exactly this call.
        Scopes:
          once: this call alone
          execution: also every further call of these tools in this run, with any arguments:
            | files.write
        "#);
    }

    #[test]
    fn a_truncated_name_is_announced_in_the_first_line_and_below_it() {
        let mut call = summarize(&candidate(1, "write", &json!({}), None), CODE, 1);
        (call.kind, call.name) = ("resource".into(), "file:///etc/hosts".into());
        let text = single_call_text(&call);
        let whole = "Running code asks server files for this resource without arguments.\n    | file:///etc/hosts\nThe program";
        assert!(text.starts_with(whole), "{text}");
        call.name_left_out = 7;
        let text = single_call_text(&call);
        let first = text.lines().next().unwrap_or_default();
        let warning = "\nWARNING: 7 characters of the name of this resource are not shown. An answer counts for all of them.\n";
        assert!(first.contains("INCOMPLETE") && text.contains(warning), "{text}");
    }

    #[test]
    fn a_server_that_claims_nothing_is_said_to_claim_nothing() {
        let mut request = candidate(1, "write", &json!({}), None);
        request.claims = ToolHints::default();
        let text = single_call_text(&summarize(&request, CODE, 1));
        assert!(text.contains("\nThe server says: nothing about the effects of this tool.\n"), "{text}");
    }

    #[test]
    fn content_that_is_not_shown_is_announced_in_the_first_line_and_below_it() {
        let mut request = candidate(1, "write", &json!({"sha256": "00"}), None);
        assert!(summarize(&request, CODE, 1).is_complete());
        request.undescribed_bytes = 7;
        assert!(request.needs_own_prompt());
        let text = single_call_text(&summarize(&request, CODE, 1));
        let first = text.lines().next().unwrap_or_default();
        let warning = "\nWARNING: 7 bytes of the file between its beginning and its end are not shown. ";
        assert!(first.contains("INCOMPLETE") && text.contains(warning), "{text}");
    }

    #[test]
    fn without_a_schema_every_argument_is_required() {
        let many =
            |count: usize| -> Value { (0..count).map(|at| (format!("part_{at:04}"), json!("x"))).collect() };
        let hidden = |arguments: &Value| {
            let call = candidate(1, "write", arguments, None);
            ArgumentOrder::for_call(&call.pending, None).hidden_required_text(&call.pending.everything_sent())
        };
        assert_eq!(hidden(&many(20)), None);
        let message = hidden(&many(300)).unwrap_or_default();
        assert!(
            message.ends_with(" of its 300 arguments would be hidden, required ones among them"),
            "{message}"
        );
    }

    #[test]
    fn a_line_number_beyond_the_code_is_reported() {
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
        The program says that the calls are at these lines of its code, whose comments may be wrong:
            |     3  files.write(path=p)  # \u001b[2J
        The policy asks by:
            | policy.toml:3
        Hash: b51d9a73eb94, of exactly these calls.
        Scopes:
          once: the calls above alone
          execution: also every further call of these tools in this run, with any arguments:
            | files.remove.all
            | files.write
        "#);
    }

    #[test]
    fn the_hash_covers_exactly_these_calls() {
        let digest = |calls: &[ApprovalRequest]| Prompt::new(calls, CODE, None, Presence::None).digest;
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
