//! Formats the answer to a run as text: its value (or a sentence, if there is no complete value), its
//! printed output, and the calls that may have changed something.

use lockhouse_base::json::group_thousands;
use lockhouse_protocol::ResultHandle;
use serde_json::{Map, Value};

use super::AnswerForm;

/// Maximum number of tools in the line about a running program.
const TOOLS_IN_FLIGHT_MAX: usize = 10;
/// Maximum number of tools in the line about calls that may have changed something, and in that about further content.
const TOOLS_MAX: usize = 3;
/// The outcomes of calls that did not reach their upstream server.
const NOT_SENT: [&str; 7] =
    ["not_sent", "denied", "approval_declined", "invalid_arguments", "unknown_tool", "rate_limited", "draft"];

/// Renames the member `value` of an answer to `preview` if the value was cut.
pub(super) fn name_preview(answer: &mut Value) {
    if answer.pointer("/truncated/value").is_none() {
        return;
    }
    let Some(members) = answer.as_object_mut() else { return };
    let renamed = std::mem::take(members).into_iter();
    *members =
        renamed.map(|(name, value)| (if name == "value" { "preview".into() } else { name }, value)).collect();
}

/// Returns the first text block of a finished run: its complete value as JSON, which follows `Value: ` in the form
/// `labelled`. If there is no complete value, returns the error, or a sentence that says that the value is absent or
/// was cut. `reader` is the name of the tool that reads stored results.
pub(super) fn first_text(answer: &Value, form: AnswerForm, reader: &str) -> String {
    if let Some(error) = answer.get("error") {
        return error_text(error);
    }
    if let Some(cut) = answer.pointer("/truncated/value") {
        return format!("{}\n{}", cut_sentence("Value", cut, reader), answer["preview"]);
    }
    match answer.get("value") {
        Some(value) if form == AnswerForm::Labelled => format!("Value: {value}"),
        Some(value) => value.to_string(),
        None if answer["no_value"].is_string() => {
            format!("No value: {}.", answer["no_value"].as_str().unwrap_or_default())
        }
        None if has_output(answer) => "No value, only printed output.".to_owned(),
        None => "No value: end with an expression.".to_owned(),
    }
}

/// Whether the whole value is all that the text of this answer contains: in the form `value`, whose readers parse it.
/// Without a whole value, this form has the same text as the form for models.
pub(super) fn is_only_value(answer: &Value, form: AnswerForm) -> bool {
    form == AnswerForm::Value && answer.get("value").is_some() && answer.get("error").is_none()
}

/// Returns what the program printed: standard output, and then standard error after the line `stderr:`. Returns `None`
/// if it printed nothing.
pub(super) fn printed_output(answer: &Value, reader: &str) -> Option<String> {
    let output = |name: &str| {
        let text = answer[name].as_str()?;
        let cut = answer.pointer(&format!("/truncated/{name}"));
        let sentence =
            cut.map(|cut| format!("{}\n", cut_sentence("Output", cut, reader))).unwrap_or_default();
        Some(format!("{sentence}{text}"))
    };
    match (output("stdout"), output("stderr")) {
        (stdout, None) => stdout,
        (None, Some(stderr)) => Some(format!("stderr:\n{stderr}")),
        (Some(stdout), Some(stderr)) => Some(format!("{}\nstderr:\n{stderr}", stdout.trim_end_matches('\n'))),
    }
}

/// Returns the line that lists the calls of a successful run that may have changed something, without those of tools whose
/// names say that they read. Returns `None` if there are none, or if the run failed, because the text of the error lists
/// such calls.
pub(super) fn changes(answer: &Value) -> Option<String> {
    if answer.get("error").is_some() {
        return None;
    }
    let calls = answer["calls"].as_array()?;
    let with_effects = calls.iter().filter(|call| call["changes"] == true && call["likely_read"] != true);
    let (mut changed, mut failed, mut unknown) =
        (ToolCounts::default(), ToolCounts::default(), ToolCounts::default());
    for call in with_effects {
        match call["outcome"].as_str().unwrap_or_default() {
            "ok" => changed.add(call),
            outcome if NOT_SENT.contains(&outcome) => {}
            "tool_failed" => failed.add(call),
            _ => unknown.add(call),
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
pub(super) fn content_aside(answer: &Value) -> Option<String> {
    let calls = answer["calls"].as_array()?;
    let mut tools = ToolCounts::default();
    calls.iter().filter(|call| call["content_aside"] == true).for_each(|call| tools.add(call));
    let of_failures = calls.iter().all(|call| call["content_aside"] != true || call["outcome"] != "ok");
    let taken = if of_failures { "error" } else { "value" };
    let shown = tools.0.len().min(TOOLS_MAX);
    (shown > 0).then(|| {
        format!("Results with further content: {} (in code: full_result({taken}))", tools.list(shown))
    })
}

/// Returns the line that names the files of a run, because some AI clients drop links. Returns `None` if there are none.
pub(super) fn files(answer: &Value) -> Option<String> {
    let files = answer["files"].as_array()?;
    let (stored, left_out): (Vec<_>, Vec<_>) = files.iter().partition(|file| file["handle"].is_string());
    let text = |file: &Value, name: &str| file[name].as_str().unwrap_or_default().to_owned();
    let mut parts: Vec<String> = stored
        .iter()
        .map(|file| {
            let bytes = group_thousands(file["bytes"].as_u64().unwrap_or_default() as usize);
            format!("{} ({bytes} bytes, handle {})", text(file, "name"), text(file, "handle"))
        })
        .collect();
    let sentences =
        left_out.iter().map(|file| format!("{} is left out: {}", text(file, "name"), text(file, "left_out")));
    parts.extend(sentences);
    let hint = stored.first().map(|file| saving_hint(file)).unwrap_or_default();
    (!parts.is_empty()).then(|| format!("Files: {}{hint}.", parts.join("; ")))
}

/// Returns the line about a session that ended with the run. Returns `None` if the session is still open, and without one.
pub(super) fn session_end(answer: &Value) -> Option<String> {
    let session = &answer["session"];
    let (name, why) = (session["name"].as_str()?, session["ended"].as_str()?);
    Some(format!("Session {name} ended: {why}."))
}

/// Returns the sentence about how to save a stored file, and how long it is stored.
fn saving_hint(file: &Value) -> String {
    let minutes = file["expires_s"].as_u64().map(|seconds| seconds.div_ceil(60));
    let time = match (file["ends_with_client"] == true, minutes) {
        (true, Some(minutes)) => format!(" until this client disconnects, at most {minutes} min"),
        (false, Some(minutes)) => format!(" within {minutes} min"),
        (_, None) => String::new(),
    };
    format!(". `lockhouse result HANDLE --out DIR` saves one{time}")
}

/// Returns the text for a run that is still running: its progress, and how to wait for its answer with its handle.
pub(super) fn running(status: &Value, reader: &str) -> String {
    let progress = &status["progress"];
    let handle = status["handle"].as_str().unwrap_or_default();
    let mut facts = vec![format!("{:.1} s", progress["elapsed_s"].as_f64().unwrap_or_default())];
    if let Some(calls) = progress["calls"].as_u64().filter(|calls| *calls > 0) {
        facts.push(format!("{calls} calls made"));
    }
    if let Some(in_flight) = progress["under_way"].as_object() {
        let targets = in_flight.iter().take(TOOLS_IN_FLIGHT_MAX);
        let targets: Vec<String> = targets.map(|(target, count)| times(target, count.as_u64())).collect();
        facts.push(format!("waiting for {}", targets.join(", ")));
    }
    let waiting = ["waiting", "waiting_for"].map(|name| progress[name].as_str());
    match waiting {
        [_, Some(reason)] => facts.push(format!("waiting for a person: {reason}")),
        [Some(reason), None] => facts.push(format!("waiting {reason}")),
        [None, None] => {}
    }
    format!(
        "Still running ({}). {reader}(\"{handle}\") waits for the answer; do not run it again.",
        facts.join(", ")
    )
}

/// Returns the last part of what a running program has printed on standard output. Returns `None` if the status
/// contains no output.
pub(super) fn output_tail(status: &Value) -> Option<String> {
    status
        .pointer("/progress/stdout_tail")
        .and_then(Value::as_str)
        .map(|tail| format!("Output so far ends with:\n{tail}"))
}

/// Returns a part of a stored result, after a sentence with the position of the part in the result. If the result is a
/// list and the part contains all of it, returns only the JSON of the list.
pub(super) fn part(part: &Value, handle: &ResultHandle, reader: &str) -> String {
    if let Some(file) = part.get("file") {
        let bytes = group_thousands(file["bytes"].as_u64().unwrap_or_default() as usize);
        let (name, uri) =
            (file["name"].as_str().unwrap_or_default(), file["uri"].as_str().unwrap_or_default());
        return format!(
            "This is the file {name} ({bytes} bytes), whose content is not shown. Code reads it with open(\"{uri}\"), and \
             `lockhouse result {handle} --out DIR` saves it."
        );
    }
    let number = |name: &str| part[name].as_u64().unwrap_or_default();
    let (offset, total, next) = (number("offset"), number("of"), part["next_offset"].as_u64());
    let is_list = part["value"].is_array();
    if is_list && offset == 0 && next.is_none() && part.get("cut").is_none() {
        return part["value"].to_string();
    }
    let end = next.unwrap_or(total);
    let position = format!(
        "{} {offset} to {} of {}",
        if is_list { "items" } else { "characters" },
        end.saturating_sub(1),
        group_thousands(total as usize)
    );
    let cut = if part.get("cut").is_some() { ", the last one cut" } else { "" };
    let more = match next {
        Some(next) => format!("{reader}(\"{handle}\", offset={next}) reads on"),
        None => "this is the last part".to_owned(),
    };
    let value = match &part["value"] {
        Value::String(text) => text.clone(),
        items => items.to_string(),
    };
    format!("Part of the value: {position}{cut}; {more}.\n{value}")
}

/// Returns the members of an answer that its text does not contain. They are sent in `_meta` of the tool
/// result.
pub(super) fn remaining_members(answer: &Value, form: AnswerForm) -> Value {
    let is_only_value = is_only_value(answer, form);
    let in_text = |name: &str| match name {
        "value" | "preview" | "no_value" => true,
        "stdout" | "stderr" => !is_only_value,
        _ => false,
    };
    let members = answer.as_object().into_iter().flatten();
    let rest: Map<String, Value> = members
        .filter(|(name, _)| !in_text(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    rest.into()
}

fn has_output(answer: &Value) -> bool {
    ["stdout", "stderr"].iter().any(|name| answer.get(name).is_some())
}

/// Returns the sentence about a value or an output that was cut: its size, and how to read all of it. `part` names it
/// at the start of the sentence, and `cut` contains its size and handle.
fn cut_sentence(part: &str, cut: &Value, reader: &str) -> String {
    let bytes = |name: &str| group_thousands(cut[name].as_u64().unwrap_or_default() as usize);
    let access = match cut["handle"].as_str() {
        Some(handle) => {
            format!(
                "{reader}(\"{handle}\") reads it in parts, load_result(\"{handle}\") gives code all of it"
            )
        }
        None => "return or print less: filter, aggregate or slice in the code".to_owned(),
    };
    format!("{part} cut: {} bytes, of which {} are shown; {access}.", bytes("bytes"), bytes("shown"))
}

/// Returns an error as text: its message and line, the source line of the program that raised it, the
/// hint, and the calls that may have changed something.
fn error_text(error: &Value) -> String {
    let text = |name: &str| error[name].as_str().filter(|text| !text.is_empty());
    let mut shown = text("type").unwrap_or("Error").to_owned();
    if let Some(code) = text("code") {
        shown.push_str(&format!("({code})"));
    }
    if let Some(message) = text("message") {
        shown.push_str(&format!(": {message}"));
    }
    if let Some(line) = error["line"].as_u64() {
        shown.push_str(&format!(" (line {line})"));
    }
    if let Some(frame) = text("traceback").and_then(source_line) {
        shown.push_str(&format!("\n    {frame}"));
    }
    for name in ["hint", "changed"] {
        if let Some(words) = text(name) {
            shown.push_str(&format!("\n{name}: {words}"));
        }
    }
    if let Some(seconds) = error["retry_after_s"].as_u64() {
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
struct ToolCounts(Vec<(String, u64)>);

impl ToolCounts {
    fn add(&mut self, call: &Value) {
        let name = |kind: &str| call[kind].as_str();
        let target = name("tool").or_else(|| name("resource")).or_else(|| name("prompt")).unwrap_or("?");
        let title = format!("{}.{target}", name("server").unwrap_or_default());
        let count = call["count"].as_u64().unwrap_or(1);
        match self.0.iter_mut().find(|(other, _)| *other == title) {
            Some((_, total)) => *total += count,
            None => self.0.push((title, count)),
        }
    }

    /// Lists the first `shown` tools, and the number of the others.
    fn list(&self, shown: usize) -> String {
        let titles = self.0.iter().take(shown).map(|(title, count)| times(title, Some(*count)));
        let more = match self.0.len() - shown {
            0 => None,
            1 => Some("1 more tool".to_owned()),
            more => Some(format!("{more} more tools")),
        };
        titles.chain(more).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the name of a tool, followed by the number of its calls if there is more than one.
fn times(target: &str, count: Option<u64>) -> String {
    match count {
        Some(count @ 2..) => format!("{target} ×{count}"),
        _ => target.to_owned(),
    }
}
