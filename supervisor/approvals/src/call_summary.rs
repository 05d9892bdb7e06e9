//! Describes one call in an approval prompt.

use lockhouse_catalog::ToolHints;
use lockhouse_messages::CallSummary;
use lockhouse_policies::escaped_line;

use super::approval_request::ApprovalRequest;
use super::argument_display::ArgumentDisplay;
use super::prompt_limits::{ARGUMENT_CHARS_MAX, ARGUMENT_CHARS_MIN};
use super::untrusted_text::{both_ends, push_json_escaped, rendered_chars, truncated_start};

/// Maximum number of characters that a prompt shows of a line of code.
const CODE_CHARS_MAX: usize = 200;

/// Returns the summary of one call for a prompt that shows `together` calls. All calls share the space of the
/// prompt equally. `code` is the program that makes the call; it is empty for a direct call.
pub(super) fn summarize(call: &ApprovalRequest, code: &str, together: usize) -> CallSummary {
    let ApprovalRequest { pending, line, claims, order, undescribed_bytes, .. } = call;
    let sent = pending.everything_sent();
    let (line, room) = (*line, (ARGUMENT_CHARS_MAX / together.max(1)).max(ARGUMENT_CHARS_MIN));
    let ArgumentDisplay { names, names_left_out, text, left_out, .. } =
        order.display(&sent, room, together > 1);
    let overview = order.overview(&sent, names.len());
    // The worker reports the number of the line. The text of the line comes from the supervisor's copy of the code.
    let source = line.and_then(|line| code.lines().nth(line.checked_sub(1)? as usize));
    let (name, name_left_out) = display_name(pending.item().as_str());
    CallSummary {
        server: pending.server().to_string(),
        kind: pending.item().kind().to_owned(),
        name,
        name_left_out,
        argument_names: names,
        argument_names_left_out: names_left_out,
        overview,
        arguments: text,
        arguments_left_out: left_out,
        content_left_out: *undescribed_bytes,
        claims: claims_text(*claims).to_owned(),
        line,
        source: source.map(|source| escaped_line(source.trim(), CODE_CHARS_MAX)),
        rule: pending.rule().to_string(),
        directly: code.is_empty(),
    }
}

/// Returns a name for display, and the number of its characters that are not shown. Of a long name, the beginning, the
/// end and the length are shown, in quotation marks. Quotation marks in a name are escaped as in JSON, so that no name
/// that is shown as a whole looks like a truncated one.
fn display_name(name: &str) -> (String, usize) {
    if rendered_chars(name, ARGUMENT_CHARS_MAX, push_json_escaped) <= ARGUMENT_CHARS_MAX {
        return (truncated_start(name, ARGUMENT_CHARS_MAX, push_json_escaped).0, 0);
    }
    both_ends(name, ARGUMENT_CHARS_MAX)
}

/// Describes what the upstream server claims about the effects of a tool (MCP annotations). A tool that is read-only is
/// not called destructive, whatever its other annotations say.
fn claims_text(claims: ToolHints) -> &'static str {
    match claims {
        ToolHints { read_only: Some(true), .. } => "it only reads",
        ToolHints { destructive: Some(true), .. } => "it may destroy or overwrite things",
        ToolHints { destructive: Some(false), .. } => "it adds to things and destroys nothing",
        ToolHints { read_only: Some(false), .. } => "it changes things",
        ToolHints { .. } => "nothing about the effects of this tool",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_shows_its_beginning_end_and_length() {
        let long = format!("file:///{}/end", "a".repeat(ARGUMENT_CHARS_MAX - 12));
        assert_eq!(display_name(&long), (long.clone(), 0));
        assert_eq!(display_name("x\u{200b}\"\t"), ("x\\u200b\\\"\\t".to_owned(), 0));
        let (shown, left_out) = display_name(&format!("file:///{}/end", "a".repeat(8_000)));
        let is_cut = shown.starts_with("\"file:///aaa")
            && shown.contains("aaa/end\" (8012 characters, the first 3000 ");
        assert!(is_cut && left_out == 4_012, "{left_out}: {shown}");
    }

    #[test]
    fn escaped_characters_count_with_their_displayed_length() {
        let (shown, left_out) = display_name(&"\u{200b}".repeat(2_000));
        assert!(shown.chars().count() < ARGUMENT_CHARS_MAX + 200 && left_out > 1_000, "{left_out}: {shown}");
    }
}
