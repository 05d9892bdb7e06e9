//! Head and tail of text that is too long, and how much lies between.

/// Bytes of the mark between head and tail.
const MARK_BYTES_MAX: usize = 64;

/// As much of the head and of the tail as fits into `limit` bytes with a mark between; whole lines where there are any.
/// What fits stays as it is: then there is none.
pub fn cut(text: &str, limit: usize) -> Option<String> {
    if text.len() <= limit {
        return None;
    }
    let (head, tail) = middle_out(text, limit, char::len_utf8);
    let (lines_head, lines_tail) = (whole_lines(head), whole_last_lines(tail));
    // A long line is not given up for being cut.
    let is_short = |whole: &str, part: &str| whole.len() < part.len() / 2;
    if tail.is_empty() || is_short(lines_head, head) || is_short(lines_tail, tail) {
        let left_out = &text[head.len()..text.len() - tail.len()];
        return Some(match tail.is_empty() {
            true => head.to_owned(),
            false => format!("{head}{}{tail}", mark(left_out.chars().count())),
        });
    }
    let left_out = &text[lines_head.len()..text.len() - lines_tail.len()];
    let lines = grouped(left_out.matches('\n').count());
    Some(format!("{lines_head}… {lines} lines left out …\n{lines_tail}"))
}

/// Head and tail of a text that is longer than `room`, so that both fit into it with a mark between; where there is no
/// room for a mark, a head alone. `cost` is what a character takes.
pub(super) fn middle_out(text: &str, room: usize, cost: impl Fn(char) -> usize) -> (&str, &str) {
    let Some(sides) = room.checked_sub(MARK_BYTES_MAX).filter(|sides| *sides >= MARK_BYTES_MAX) else {
        return (&text[..fitting(text.chars(), room.saturating_sub('…'.len_utf8()), &cost)], "");
    };
    let head = &text[..fitting(text.chars(), sides / 2, &cost)];
    let rest = &text[head.len()..];
    let tail = fitting(rest.chars().rev(), sides - sides / 2, &cost);
    (head, &rest[rest.len() - tail..])
}

/// Bytes of the first characters that fit.
fn fitting(characters: impl Iterator<Item = char>, room: usize, cost: impl Fn(char) -> usize) -> usize {
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

/// What a character takes in JSON.
pub(super) fn in_json(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => character.len_utf8(),
    }
}

/// What stands for characters that are left out.
pub(super) fn mark(characters: usize) -> String {
    format!(" … {} more characters … ", grouped(characters))
}

fn whole_lines(text: &str) -> &str {
    &text[..text.rfind('\n').map_or(0, |at| at + 1)]
}

fn whole_last_lines(text: &str) -> &str {
    &text[text.find('\n').map_or(text.len(), |at| at + 1)..]
}

/// A number with commas between its thousands.
pub fn grouped(number: usize) -> String {
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
        let shown = cut(&text, 200).expect("too long");
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
        let shown = cut(&format!("a{}z", "ž".repeat(1_000)), 200).expect("too long");
        assert!(shown.starts_with("ažž") && shown.ends_with("žz") && shown.len() <= 200, "{shown}");
        assert!(shown.contains(" … ") && shown.contains(" more characters … "), "{shown}");
    }

    #[test]
    fn numbers_have_commas() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(number), text);
        }
    }

    proptest! {
        #[test]
        fn head_and_tail_are_those_of_the_text(text in "[a\nž\0]{0,600}", limit in 0_usize..700) {
            match cut(&text, limit) {
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
