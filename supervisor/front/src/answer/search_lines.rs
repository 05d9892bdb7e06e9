//! The text of a tool search: one line for each tool that was found.

use serde_json::{Map, Value};

use super::{record_types, shared_parameters};

/// Returns the text of a tool search: lines `server.signature # summary`, only names if the search asked
/// for names, or JSON if it asked for full definitions. Record types that several tools share come first.
/// The last lines tell how many matches were left out and which servers were not searched.
pub(super) fn lines(found: &Value) -> String {
    let tools = found["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    if tools.iter().any(|tool| tool.get("tool").is_none()) {
        return found.to_string();
    }
    let (mut signatures, comments): (Vec<String>, Vec<String>) = tools.iter().map(line).unzip();
    let servers: Vec<&str> = tools.iter().map(|tool| tool["server"].as_str().unwrap_or_default()).collect();
    let shared = shared_parameters::extract(&servers, &mut signatures);
    let mut lines = record_types::name_repeated(&mut signatures);
    lines.extend(signatures.into_iter().zip(comments).map(|(signature, comment)| signature + &comment));
    lines.extend(shared);
    if tools.is_empty() {
        lines.push(nothing_found(found));
    }
    lines.extend(found["skills"].as_array().into_iter().flatten().map(skill_line));
    if let Some(left_out) = found["left_out"].as_object() {
        lines.push(format!("More matches: {}; raise limit, or add server:NAME", counts(left_out)));
    }
    if let Some(unavailable) = found["unavailable"].as_array() {
        let reasons = unavailable.iter().filter_map(Value::as_str);
        lines.push(format!("Not searched: {}", grouped_by_reason(reasons)));
    }
    lines.join("\n")
}

/// Returns the line of a tool in two parts: its signature with the name of its server, and the comment
/// after it.
fn line(tool: &Value) -> (String, String) {
    let text = |name: &str| tool[name].as_str().filter(|text| !text.is_empty());
    let server = text("server").unwrap_or_default();
    if let Some(name) = text("direct") {
        let summary = text("summary").map(|summary| format!("; {summary}")).unwrap_or_default();
        let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
        return (name.to_owned(), format!("  # a tool of its own: call it directly, not from code{summary}"));
    }
    let signature = [("python", "#"), ("typescript", "//")]
        .into_iter()
        .find_map(|(language, mark)| Some((text(language)?, mark)));
    let Some((signature, mark)) = signature else {
        return (format!("{server}.{}", text("tool").unwrap_or_default()), String::new());
    };
    let start = format!("  {mark} ");
    // A signature can end with a comment of its own.
    let (signature, own) =
        signature.split_once(&start).map_or((signature, None), |(of, own)| (of, Some(own)));
    let separator = own.map_or(start.clone(), |own| format!("{start}{own}; "));
    // A summary is one line, also if a server's description has line breaks of another kind.
    let summary = text("summary").map(|summary| summary.split_whitespace().collect::<Vec<_>>().join(" "));
    let comment = match (summary, own) {
        (Some(summary), _) => format!("{separator}{summary}"),
        (None, Some(own)) => format!("{start}{own}"),
        (None, None) => String::new(),
    };
    (format!("{server}.{signature}"), comment)
}

/// Returns the line of a saved skill: how code imports and calls it, and its description.
fn skill_line(skill: &Value) -> String {
    let text = |name: &str| skill[name].as_str().unwrap_or_default();
    let mark = if text("language") == "typescript" { "//" } else { "#" };
    let call = skill["signature"].as_str().map(|signature| format!("; {signature}")).unwrap_or_default();
    let description = text("description").split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}{call}  {mark} a saved skill: {description}", text("import").trim_end_matches(';'))
}

/// Returns the line for a search without results. It tells how many tools there are, and how to list
/// them.
fn nothing_found(found: &Value) -> String {
    let available = found["available"].as_object();
    match available.filter(|available| !available.is_empty()) {
        Some(available) => {
            let total: u64 = available.values().filter_map(Value::as_u64).sum();
            let tools = if total == 1 { "1 tool".to_owned() } else { format!("{total} tools") };
            let counts = counts(available);
            format!("No match among {tools}: {counts}. The query server:NAME lists the tools of one server.")
        }
        None => "No match: there are no tools.".to_owned(),
    }
}

/// Groups texts of the form `SERVER: REASON` by their reasons, in the order in which the reasons occur first.
fn grouped_by_reason<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (server, reason) in texts.map(|text| text.split_once(": ").unwrap_or(("", text))) {
        match groups.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, servers)) => servers.push(server),
            None => groups.push((reason, vec![server])),
        }
    }
    let texts = groups.into_iter().map(|(reason, servers)| match servers.as_slice() {
        [""] => reason.to_owned(),
        servers => format!("{}: {reason}", servers.join(", ")),
    });
    texts.collect::<Vec<_>>().join("; ")
}

fn counts(by_server: &Map<String, Value>) -> String {
    by_server.iter().map(|(server, count)| format!("{server} {count}")).collect::<Vec<_>>().join(", ")
}
