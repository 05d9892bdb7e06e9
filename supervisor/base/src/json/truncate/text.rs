//! Truncates text: keeps its head and its tail, and marks how much is omitted between them.

/// Number of bytes that are reserved for the mark between head and tail.
const MARK_BYTES_MAX: usize = 64;

/// Truncates a text to at most `limit` bytes, at line ends if that does not omit much more. Returns `None` if the text
/// fits.
pub fn truncate(text: &str, limit: usize) -> Option<String> {
    if text.len() <= limit {
        return None;
    }
    let (head, tail) = head_and_tail(text, limit, char::len_utf8);
    let (lines_head, lines_tail) = (whole_lines(head), whole_last_lines(tail));
    // Cutting at line ends would lose most of a long line.
    let is_short = |whole: &str, part: &str| whole.len() < part.len() / 2;
    if tail.is_empty() || is_short(lines_head, head) || is_short(lines_tail, tail) {
        let left_out = &text[head.len()..text.len() - tail.len()];
        return Some(match tail.is_empty() {
            true => head.to_owned(),
            false => format!("{head}{}{tail}", omission_mark(left_out.chars().count())),
        });
    }
    let left_out = &text[lines_head.len()..text.len() - lines_tail.len()];
    let lines = group_thousands(left_out.matches('\n').count());
    Some(format!("{lines_head}… {lines} lines left out …\n{lines_tail}"))
}

/// Returns a head and a tail of the text that fit into `room` bytes together with the mark between them. If `room` is
/// less than twice [`MARK_BYTES_MAX`], the tail is empty. `cost` returns the number of bytes that a character takes in
/// the output.
pub(super) fn head_and_tail(text: &str, room: usize, cost: impl Fn(char) -> usize) -> (&str, &str) {
    let Some(sides) = room.checked_sub(MARK_BYTES_MAX).filter(|sides| *sides >= MARK_BYTES_MAX) else {
        return (&text[..prefix_length(text.chars(), room.saturating_sub('…'.len_utf8()), &cost)], "");
    };
    let head = &text[..prefix_length(text.chars(), sides / 2, &cost)];
    let rest = &text[head.len()..];
    let tail = prefix_length(rest.chars().rev(), sides - sides / 2, &cost);
    (head, &rest[rest.len() - tail..])
}

/// Returns the length in bytes of the longest prefix whose cost is at most `room`.
fn prefix_length(characters: impl Iterator<Item = char>, room: usize, cost: impl Fn(char) -> usize) -> usize {
    let (mut used, mut bytes) = (0, 0);
    for character in characters {
        used += cost(character);
        if used > room {
            break;
        }
        bytes += character.len_utf8();
    }
    bytes
}

/// Returns the number of bytes that a character takes inside a JSON string.
pub(super) fn json_length(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => character.len_utf8(),
    }
}

/// Returns the mark that replaces omitted characters.
pub(super) fn omission_mark(characters: usize) -> String {
    format!(" … {} more characters … ", group_thousands(characters))
}

fn whole_lines(text: &str) -> &str {
    &text[..text.rfind('\n').map_or(0, |at| at + 1)]
}

fn whole_last_lines(text: &str) -> &str {
    &text[text.find('\n').map_or(text.len(), |at| at + 1)..]
}

/// Formats a number with commas between thousands.
pub fn group_thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_stay_whole() {
        let text: String = (0..1_000).map(|line| format!("line {line}\n")).collect();
        let shown = truncate(&text, 200).expect("too long");
        insta::assert_snapshot!(shown, @"
        line 0
        line 1
        line 2
        line 3
        line 4
        line 5
        line 6
        line 7
        line 8
        … 984 lines left out …
        line 993
        line 994
        line 995
        line 996
        line 997
        line 998
        line 999
        ");
    }

    #[test]
    fn a_long_line_is_cut_in_its_middle() {
        let shown = truncate(&format!("a{}z", "ž".repeat(1_000)), 200).expect("too long");
        assert!(shown.starts_with("ažž") && shown.ends_with("žz") && shown.len() <= 200, "{shown}");
        assert!(shown.contains(" … ") && shown.contains(" more characters … "), "{shown}");
    }

    #[test]
    fn numbers_have_commas() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(group_thousands(number), text);
        }
    }

    proptest! {
        #[test]
        fn head_and_tail_are_those_of_the_text(text in "[a\nž\0]{0,600}", limit in 0_usize..700) {
            match truncate(&text, limit) {
                None => prop_assert!(text.len() <= limit),
                Some(shown) => {
                    prop_assert!(shown.len() <= limit, "{} > {limit}", shown.len());
                    let head = shown.split('…').next().unwrap_or_default().trim_end_matches(' ');
                    let tail = shown.rsplit('…').next().unwrap_or_default().trim_start_matches([' ', '\n']);
                    prop_assert!(text.starts_with(head));
                    prop_assert!(!shown.contains('…') || text.ends_with(tail));
                }
            }
        }
    }
}
