//! Formats the answer to a run as text: its value (or a sentence, if there is no complete value), its
//! printed output, and the calls that may have changed something.

use lockhouse_base::json::group_thousands;
use lockhouse_messages::{
    AnswerMembers, CallReport, CalledItem, CutPart, CutValue, ErrorCode, FileReport, RunAnswer, RunError,
    RunStatus, ShownText, StoredFileReport,
};
use lockhouse_protocol::{CallOutcome, Delivery};
use serde_json::{Value, json};

use super::AnswerForm;

/// Maximum number of tools in the line about calls that may have changed something, and in that about further content.
const TOOLS_MAX: usize = 3;

/// Returns the text blocks of a finished run, at least one. `reader` is the name of the tool that reads stored results.
pub(super) fn texts(answer: &RunAnswer, form: AnswerForm, reader: &str) -> Vec<String> {
    let mut texts = vec![first_text(answer, form, reader)];
    if !is_only_value(answer, form) {
        texts.extend(printed_output(answer, reader));
        texts.extend(changes(answer));
        texts.extend(content_aside(answer));
        texts.extend(files(answer));
        texts.extend(session_end(answer));
    }
    texts
}

/// Returns the first text block: the complete value as JSON, which follows `Value: ` in the form `labelled`. If there is no
/// complete value, returns the error, or a sentence that says that the value is absent or was cut.
fn first_text(answer: &RunAnswer, form: AnswerForm, reader: &str) -> String {
    if let Some(error) = &answer.error {
        return error_text(error);
    }
    if let Some(value) = &answer.value {
        return match &value.cut {
            Some(cut) => format!("{}\n{}", cut_sentence("Value", cut, reader), value.json),
            None if form == AnswerForm::Labelled => format!("Value: {}", value.json),
            None => value.json.get().to_owned(),
        };
    }
    let has_output = [&answer.stdout, &answer.stderr].iter().any(|output| !output.text.is_empty());
    match &answer.no_value {
        Some(advice) => format!("No value: {advice}."),
        None if has_output => "No value, only printed output.".to_owned(),
        None => "No value: end with an expression.".to_owned(),
    }
}

/// Whether the whole value is all that the text of this answer contains: in the form `value`, whose readers parse it.
/// Without a whole value, this form has the same text as the form for models.
fn is_only_value(answer: &RunAnswer, form: AnswerForm) -> bool {
    form == AnswerForm::Value && answer.whole_value().is_some() && answer.error.is_none()
}

/// Returns what the program printed: standard output, and then standard error after the line `stderr:`. Returns `None`
/// if it printed nothing.
fn printed_output(answer: &RunAnswer, reader: &str) -> Option<String> {
    let shown = |output: &ShownText| {
        let sentence = output.cut.as_ref().map(|cut| format!("{}\n", cut_sentence("Output", cut, reader)));
        let text = &output.text;
        (!text.is_empty()).then(|| format!("{}{text}", sentence.unwrap_or_default()))
    };
    match (shown(&answer.stdout), shown(&answer.stderr)) {
        (stdout, None) => stdout,
        (None, Some(stderr)) => Some(format!("stderr:\n{stderr}")),
        (Some(stdout), Some(stderr)) => Some(format!("{}\nstderr:\n{stderr}", stdout.trim_end_matches('\n'))),
    }
}

/// Returns the line that lists the calls of a successful run that may have changed something, without those of tools whose
/// names say that they read. Returns `None` if there are none, or if the run failed, because the text of the error lists
/// such calls.
fn changes(answer: &RunAnswer) -> Option<String> {
    if answer.error.is_some() {
        return None;
    }
    let with_effects = answer.calls().iter().filter(|call| call.changes && !call.likely_read);
    let (mut changed, mut failed, mut unknown) =
        (ToolCounts::default(), ToolCounts::default(), ToolCounts::default());
    for call in with_effects {
        match (call.outcome, call.outcome.delivery()) {
            (CallOutcome::Ok, _) => changed.add(call),
            (_, Delivery::NotSent) => {}
            (_, Delivery::Answered) => failed.add(call),
            (_, Delivery::Unknown) => unknown.add(call),
        }
    }
    let mut groups = vec![("", changed), ("failed: ", failed), ("outcome unknown: ", unknown)];
    groups.retain(|(_, counts)| !counts.0.is_empty());
    // At least one name of each group.
    let (mut room, mut later) = (TOOLS_MAX, groups.len());
    let groups = groups.into_iter().map(|(label, counts)| {
        later -= 1;
        let shown = counts.0.len().min(room - later);
        room -= shown;
        format!("{label}{}", counts.list(shown))
    });
    let groups: Vec<String> = groups.collect();
    (!groups.is_empty()).then(|| format!("May have changed something: {}", groups.join("; ")))
}

/// Returns the line that names the tools whose results had more than their values, and says how a program reads the rest.
/// Returns `None` if there are none.
fn content_aside(answer: &RunAnswer) -> Option<String> {
    let with_content = || answer.calls().iter().filter(|call| call.content_aside);
    let mut tools = ToolCounts::default();
    with_content().for_each(|call| tools.add(call));
    let of_failures = with_content().all(|call| call.outcome != CallOutcome::Ok);
    let taken = if of_failures { "error" } else { "value" };
    let shown = tools.0.len().min(TOOLS_MAX);
    (shown > 0).then(|| {
        format!("Results with further content: {} (in code: full_result({taken}))", tools.list(shown))
    })
}

/// Returns the line that names the files of a run, because some AI clients drop links. Returns `None` if there are none.
fn files(answer: &RunAnswer) -> Option<String> {
    let stored = || {
        answer.files.iter().filter_map(|file| match file {
            FileReport::Stored(file) => Some(file),
            FileReport::LeftOut { .. } => None,
        })
    };
    let sentence = |file: &StoredFileReport| {
        let bytes = group_thousands(file.bytes as usize);
        format!("{} ({bytes} bytes, handle {})", file.name, file.handle)
    };
    let left_out = answer.files.iter().filter_map(|file| match file {
        FileReport::Stored(_) => None,
        FileReport::LeftOut { name, reason } => Some(format!("{name} is left out: {reason}")),
    });
    let parts: Vec<String> = stored().map(sentence).chain(left_out).collect();
    let hint = stored().next().map(saving_hint).unwrap_or_default();
    (!parts.is_empty()).then(|| format!("Files: {}{hint}.", parts.join("; ")))
}

/// Returns the sentence about how to save a stored file, and how long it is stored.
fn saving_hint(file: &StoredFileReport) -> String {
    let minutes = file.expires_s.div_ceil(60);
    let time = match file.ends_with_client {
        true => format!("until this client disconnects, at most {minutes} min"),
        false => format!("within {minutes} min"),
    };
    format!(". `lockhouse result HANDLE --out DIR` saves one {time}")
}

/// Returns the line about a session that ended with the run. Returns `None` if the session is still open, and without one.
fn session_end(answer: &RunAnswer) -> Option<String> {
    let session = answer.session.as_ref()?;
    Some(format!("Session {} ended: {}.", session.name, session.end_sentence()?))
}

/// Returns the members of an answer that its text does not contain, for `_meta` of the tool result. An error has its
/// execution id only, because some AI clients give a model the `_meta` of errors. `None` if there is nothing to add.
pub(super) fn meta(answer: &RunAnswer, form: AnswerForm) -> Option<Value> {
    if answer.status != RunStatus::Ok {
        return answer.execution.map(|id| json!({"execution": id.to_string()}));
    }
    let members = answer.members(CutValue::Preview);
    let with_output = is_only_value(answer, form);
    Some(AnswerMembers { with_value: false, with_output, ..members }.to_json())
}

/// Returns the sentence about a value or an output that was cut: its size, and how to read all of it. `part` names it
/// at the start of the sentence.
fn cut_sentence(part: &str, cut: &CutPart, reader: &str) -> String {
    let access = match &cut.handle {
        Some(handle) => {
            format!(
                "{reader}(\"{handle}\") reads it in parts, load_result(\"{handle}\") gives code all of it"
            )
        }
        None => "return or print less: filter, aggregate or slice in the code".to_owned(),
    };
    let [bytes, shown] = [cut.bytes, cut.shown].map(group_thousands);
    format!("{part} cut: {bytes} bytes, of which {shown} are shown; {access}.")
}

/// Returns an error as text: its message and line, the source line of the program that raised it, the
/// hint, and the calls that may have changed something.
fn error_text(error: &RunError) -> String {
    let mut shown = if error.kind.is_empty() { "Error" } else { &error.kind }.to_owned();
    if let Some(code) = error.code.as_ref().map(ErrorCode::as_str).filter(|code| !code.is_empty()) {
        shown.push_str(&format!("({code})"));
    }
    if !error.message.is_empty() {
        shown.push_str(&format!(": {}", error.message));
    }
    if let Some(line) = error.line {
        shown.push_str(&format!(" (line {line})"));
    }
    if let Some(frame) = error.traceback.as_deref().and_then(source_line) {
        shown.push_str(&format!("\n    {frame}"));
    }
    for (name, words) in [("hint", &error.hint), ("changed", &error.changed)] {
        if let Some(words) = words.as_ref().filter(|words| !words.is_empty()) {
            shown.push_str(&format!("\n{name}: {words}"));
        }
    }
    if let Some(seconds) = error.retry_after_s {
        shown.push_str(&format!("\nretry_after_s: {seconds}"));
    }
    shown
}

/// Returns the source line of the program that raised an error, from the traceback. The stack frame of this line is the
/// last one in a Python traceback and the first one in a TypeScript traceback.
fn source_line(traceback: &str) -> Option<&str> {
    let lines: Vec<&str> = traceback.lines().map(str::trim).collect();
    let python = lines.iter().rposition(|line| line.starts_with("File \"<code>\""));
    let frame =
        python.or_else(|| lines.iter().position(|line| line.starts_with("at ") && line.contains("code.ts:")));
    let source = lines.get(frame? + 1)?;
    (!source.is_empty() && !source.starts_with("at ")).then_some(*source)
}

/// The number of calls to each tool, in the order of their first calls.
#[derive(Default)]
struct ToolCounts(Vec<(String, usize)>);

impl ToolCounts {
    fn add(&mut self, call: &CallReport) {
        let name = match &call.item {
            CalledItem::Tool(name) | CalledItem::Resource(name) | CalledItem::Prompt(name) => name,
            CalledItem::List(_) => "?",
        };
        let title = format!("{}.{name}", call.server);
        let count = call.count.unwrap_or(1);
        match self.0.iter_mut().find(|(other, _)| *other == title) {
            Some((_, total)) => *total += count,
            None => self.0.push((title, count)),
        }
    }

    /// Lists the first `shown` tools, and the number of the others.
    fn list(&self, shown: usize) -> String {
        let titles = self.0.iter().take(shown).map(|(title, count)| times(title, *count));
        let more = match self.0.len() - shown {
            0 => None,
            1 => Some("1 more tool".to_owned()),
            more => Some(format!("{more} more tools")),
        };
        titles.chain(more).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the name of a tool, followed by the number of its calls if there is more than one.
pub(super) fn times(target: &str, count: usize) -> String {
    match count {
        0 | 1 => target.to_owned(),
        count => format!("{target} ×{count}"),
    }
}
