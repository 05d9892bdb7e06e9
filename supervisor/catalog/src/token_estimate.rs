//! Estimates how many tokens a text takes in a model's context, without the vocabulary of a tokenizer. The estimate is
//! rarely too low.

/// Number of consecutive letters that count as one token. Words in tool definitions have four to six
/// letters for each token of the vocabulary o200k; rare abbreviations have fewer.
const LETTERS_PER_TOKEN: usize = 4;
/// Number of consecutive digits that count as one token, as in the vocabulary o200k.
const DIGITS_PER_TOKEN: usize = 3;

/// The kind of a character for the estimate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Digit,
    /// A space, which is part of the next word's token.
    Space,
    Other,
}

impl Kind {
    fn new(c: char) -> Self {
        match c {
            c if c.is_ascii_alphabetic() => Self::Letter,
            c if c.is_ascii_digit() => Self::Digit,
            ' ' => Self::Space,
            _ => Self::Other,
        }
    }
}

/// Returns an estimate of the number of tokens of a text such as a signature. The estimate is rarely too
/// low, because each punctuation character and each byte of a non-ASCII character counts as one token.
pub fn estimated_tokens(text: &str) -> usize {
    let mut tokens = 0;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = Kind::new(first);
        let run = rest.find(|c| Kind::new(c) != kind).unwrap_or(rest.len());
        tokens += match kind {
            Kind::Letter => run.div_ceil(LETTERS_PER_TOKEN),
            Kind::Digit => run.div_ceil(DIGITS_PER_TOKEN),
            Kind::Space => usize::from(run > 1),
            Kind::Other => run,
        };
        rest = &rest[run..];
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_estimated_by_runs_of_characters() {
        assert_eq!(estimated_tokens(""), 0);
        assert_eq!(estimated_tokens("list_issues(owner: str)"), 1 + 1 + 2 + 1 + 2 + 1 + 1 + 1);
        assert_eq!(estimated_tokens("1234"), 2);
        assert_eq!(estimated_tokens("äö"), 4);
    }
}
