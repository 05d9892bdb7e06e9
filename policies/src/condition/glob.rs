//! Patterns in policy conditions on text arguments. A `*` in a pattern matches any number of characters.

use std::fmt;

/// A pattern in which each `*` matches any number of characters, including none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    first: String,
    /// The parts of the pattern after its first star: those between two stars, and the part after the last star.
    /// `None` if the pattern has no star.
    rest: Option<(Vec<String>, String)>,
}

impl Glob {
    pub(crate) fn new(text: &str) -> Self {
        let mut parts: Vec<String> = text.split('*').map(str::to_owned).collect();
        let last = if parts.len() > 1 { parts.pop() } else { None };
        let first = if parts.is_empty() { String::new() } else { parts.remove(0) };
        parts.retain(|part| !part.is_empty());
        Self { first, rest: last.map(|last| (parts, last)) }
    }

    /// Whether the pattern matches the whole text. Each part between two stars is matched at its first occurrence,
    /// without backtracking, so patterns with many stars stay fast.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some((parts, last)) = &self.rest else { return text == self.first };
        let Some(mut between) =
            text.strip_prefix(self.first.as_str()).and_then(|rest| rest.strip_suffix(last.as_str()))
        else {
            return false;
        };
        for part in parts {
            let Some(at) = between.find(part.as_str()) else { return false };
            between = &between[at + part.len()..];
        }
        true
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut whole = self.first.clone();
        if let Some((parts, last)) = &self.rest {
            for part in parts.iter().chain([last]) {
                whole.push('*');
                whole += part;
            }
        }
        write!(f, "{whole:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (glob, fits, fits_not) in [
            ("rel-*", ["rel-", "rel-1"], ["rel", "a-rel-1"]),
            ("*-rel", ["-rel", "1-rel"], ["rel", "1-rel-"]),
            ("a*b*c", ["abc", "a1b2c"], ["ac", "acb"]),
            ("a*a", ["aa", "aba"], ["a", "ab"]),
            ("*", ["", "x"], ["\u{0}", "\u{0}"]),
            ("**a**", ["a", "bab"], ["", "b"]),
            ("exact", ["exact", "exact"], ["exact1", "Exact"]),
            ("é*ü", ["éü", "é*ü"], ["é", "ü"]),
        ] {
            let parsed = Glob::new(glob);
            assert!(fits.iter().all(|text| parsed.matches(text)), "{glob}");
            assert!(glob == "*" || !fits_not.iter().any(|text| parsed.matches(text)), "{glob}");
        }
        assert_eq!(Glob::new("a**b*").to_string(), r#""a*b*""#);
    }

    #[test]
    fn no_pattern_takes_long() {
        let glob = Glob::new(&"*a".repeat(500));
        assert!(!glob.matches(&("a".repeat(499) + &"b".repeat(1_000_000))));
    }
}
