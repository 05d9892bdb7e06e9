//! Results and arguments leave as JSON that every reader takes.

/// How deep JSON may nest. Readers with a limit commonly stop at 128.
const DEPTH_MAX: usize = 120;

/// The value nests deeper than readers follow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooDeep;

/// Makes what `JSON.stringify` wrote valid for strict readers: it writes halves of surrogate pairs as escapes, and
/// those stand for no character.
///
/// # Errors
/// [`TooDeep`].
pub(super) fn portable(mut json: String) -> Result<String, TooDeep> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut lone = Vec::new();
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => {
                if bytes.get(at + 1) == Some(&b'u') && matches!(bytes.get(at + 2), Some(b'd' | b'D')) {
                    lone.push(at);
                }
                at += 1;
            }
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return Err(TooDeep);
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    // From U+D800 on there is nothing but surrogates that `JSON.stringify` would escape.
    for at in lone {
        json.replace_range(at..json.len().min(at + 6), "\\ufffd");
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::{TooDeep, portable};

    #[test]
    fn lone_surrogates_are_replaced() {
        let json = r#"["\ud800\\udfff","\"\udc00["]"#.to_owned();
        assert_eq!(portable(json).as_deref(), Ok(r#"["\ufffd\\udfff","\"\ufffd["]"#));
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(portable(nested(120)).is_ok());
        assert_eq!(portable(nested(121)), Err(TooDeep));
    }
}
