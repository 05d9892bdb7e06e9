//! Patterns, found by the name that they fit: a decision must not look at each of thousands.

use std::collections::HashMap;

/// Where the patterns stand that fit a name, in some list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    exact: HashMap<Box<str>, Vec<u32>>,
    /// Sorted by their text.
    prefixes: Vec<Prefix>,
}

#[derive(Clone, Debug)]
struct Prefix {
    text: Box<str>,
    /// The longest other one that this one begins with.
    within: Option<u32>,
    entries: Vec<u32>,
}

impl Index {
    /// Of names, and of beginnings of names (`true`), each with its number in the list. What is alike keeps its order.
    pub(crate) fn of<'a>(patterns: impl Iterator<Item = (&'a str, bool)>) -> Self {
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

    /// The numbers of what fits the name, the most specific first.
    pub(crate) fn fitting(&self, name: &str) -> impl Iterator<Item = usize> {
        self.exact(name).chain(self.beginning(name))
    }

    /// The same of the names alone.
    pub(crate) fn exact(&self, name: &str) -> impl Iterator<Item = usize> {
        self.exact.get(name).into_iter().flatten().map(|number| *number as usize)
    }

    /// The same of the beginnings alone.
    pub(crate) fn beginning(&self, name: &str) -> impl Iterator<Item = usize> {
        let first = self.longest(name).and_then(|at| self.prefixes.get(at as usize));
        let shorter = |prefix: &&Prefix| self.prefixes.get(prefix.within? as usize);
        let chain = std::iter::successors(first, shorter);
        chain.flat_map(|prefix| &prefix.entries).map(|number| *number as usize)
    }

    /// Of all that the name begins with, each begins with all shorter ones, and all of them stand before the name. So the
    /// nearest one before the name is it, or begins with it.
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
        let index = Index::of(patterns.into_iter());
        let fitting = |name: &str| index.fitting(name).collect::<Vec<_>>();
        assert_eq!(fitting("ab"), [1, 5, 4, 0, 2]);
        assert_eq!(fitting("abcd"), [3, 4, 0, 2]);
        assert_eq!(fitting("abb"), [4, 0, 2]);
        assert_eq!(fitting("b"), [6, 2]);
        assert_eq!(fitting("z"), [2]);
        assert_eq!(Index::default().fitting("z").count(), 0);
    }
}
