//! An index of policy patterns. It finds the patterns that match a name without comparing the name with each pattern.

use std::collections::HashMap;

/// Finds the patterns that match a name. A pattern is identified by its position in the list from which the
/// `PatternIndex` was made.
#[derive(Clone, Debug, Default)]
pub(crate) struct PatternIndex {
    exact: HashMap<Box<str>, Vec<u32>>,
    /// The prefix patterns, sorted by text.
    prefixes: Vec<Prefix>,
}

#[derive(Clone, Debug)]
struct Prefix {
    text: Box<str>,
    /// The index in `prefixes` of the longest shorter prefix with which this prefix starts, such as `list_` for
    /// `list_iss`; `None` if this prefix starts with no other.
    within: Option<u32>,
    entries: Vec<u32>,
}

impl PatternIndex {
    /// Creates an index of `patterns`. The flag of each pattern is true for a prefix of names, and false for an
    /// exact name. Equal patterns keep their order.
    pub(crate) fn new<'a>(patterns: impl Iterator<Item = (&'a str, bool)>) -> Self {
        let mut exact: HashMap<Box<str>, Vec<u32>> = HashMap::new();
        let mut prefixes: HashMap<&str, Vec<u32>> = HashMap::new();
        for ((text, starred), number) in patterns.zip(0..) {
            if starred {
                prefixes.entry(text).or_default().push(number);
            } else {
                exact.entry(text.into()).or_default().push(number);
            }
        }
        let mut sorted: Vec<_> = prefixes.into_iter().collect();
        sorted.sort_unstable();
        let mut index = Self { exact, prefixes: Vec::with_capacity(sorted.len()) };
        for (text, entries) in sorted {
            let within = index.longest(text);
            index.prefixes.push(Prefix { text: text.into(), within, entries });
        }
        index
    }

    /// Returns the positions of all patterns that match the name, the most specific first.
    pub(crate) fn matching(&self, name: &str) -> impl Iterator<Item = usize> {
        self.exact(name).chain(self.matching_prefixes(name))
    }

    /// Returns the positions of the exact patterns that are equal to the name.
    pub(crate) fn exact(&self, name: &str) -> impl Iterator<Item = usize> {
        self.exact.get(name).into_iter().flatten().map(|number| *number as usize)
    }

    /// Returns the positions of the prefix patterns that match the name, the longest first.
    pub(crate) fn matching_prefixes(&self, name: &str) -> impl Iterator<Item = usize> {
        let first = self.longest(name).and_then(|at| self.prefixes.get(at as usize));
        let shorter = |prefix: &&Prefix| self.prefixes.get(prefix.within? as usize);
        let chain = std::iter::successors(first, shorter);
        chain.flat_map(|prefix| &prefix.entries).map(|number| *number as usize)
    }

    /// Returns the index in `prefixes` of the longest prefix with which the name starts; `None` if there is none.
    ///
    /// The search starts at the last prefix that does not sort after the name. If the name does not start with
    /// this prefix, the search follows `within` to shorter prefixes until one matches.
    fn longest(&self, name: &str) -> Option<u32> {
        let before = self.prefixes.partition_point(|prefix| &*prefix.text <= name);
        let mut at = u32::try_from(before.checked_sub(1)?).ok();
        while let Some(prefix) = at.and_then(|at| self.prefixes.get(at as usize)) {
            if name.starts_with(&*prefix.text) {
                return at;
            }
            at = prefix.within;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_comes_first() {
        let patterns =
            [("a", true), ("ab", false), ("", true), ("abc", true), ("ab", true), ("ab", false), ("b", true)];
        let index = PatternIndex::new(patterns.into_iter());
        let matching = |name: &str| index.matching(name).collect::<Vec<_>>();
        assert_eq!(matching("ab"), [1, 5, 4, 0, 2]);
        assert_eq!(matching("abcd"), [3, 4, 0, 2]);
        assert_eq!(matching("abb"), [4, 0, 2]);
        assert_eq!(matching("b"), [6, 2]);
        assert_eq!(matching("z"), [2]);
        assert_eq!(PatternIndex::default().matching("z").count(), 0);
    }
}
