//! Makes the JSON of results and arguments acceptable to strict JSON parsers: limits its nesting, and replaces lone
//! surrogates.

/// Maximum nesting depth of arrays and objects in JSON. Many parsers stop at 128.
/// Bound: values and answers.
const DEPTH_MAX: usize = 120;

/// The error of a result or an argument whose JSON is nested deeper than [`DEPTH_MAX`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooDeep;

/// Makes the output of `JSON.stringify` valid for strict parsers: replaces escapes of lone surrogates by U+FFFD.
///
/// # Errors
/// [`TooDeep`] if the nesting exceeds the limit.
pub(super) fn to_portable_json(mut json: String) -> Result<String, TooDeep> {
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
    // All escapes from `\ud800` on are lone surrogates, since `JSON.stringify` escapes nothing else there.
    for at in lone {
        json.replace_range(at..json.len().min(at + 6), "\\ufffd");
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::{TooDeep, to_portable_json};

    #[test]
    fn lone_surrogates_are_replaced() {
        let json = r#"["\ud800\\udfff","\"\udc00["]"#.to_owned();
        assert_eq!(to_portable_json(json).as_deref(), Ok(r#"["\ufffd\\udfff","\"\ufffd["]"#));
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(to_portable_json(nested(120)).is_ok());
        assert_eq!(to_portable_json(nested(121)), Err(TooDeep));
    }
}
