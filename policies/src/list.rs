//! The lists of patterns in a server's policy table, such as `allow` and `deny`.

use std::ops::Range;

use crate::call_target::CallTarget;
use crate::pattern::{Pattern, canonical_uri, may_escape_folder};
use crate::pattern_index::PatternIndex;

/// A list of patterns in a server's policy table, such as `allow` or `deny`.
#[derive(Clone, Debug)]
pub(crate) struct PatternList {
    /// The line of the list's key in the policy document, counted from 1.
    pub(crate) line: usize,
    pub(crate) entries: Vec<ListEntry>,
    by_name: PatternIndex,
    /// Index of the entries by the canonical form of their URIs ([`canonical_uri`]). Only the list `deny` has this
    /// index; it is `None` in other lists.
    by_canonical_uri: Option<PatternIndex>,
}

/// A pattern of a policy list, with its position in the policy document.
#[derive(Clone, Debug)]
pub(crate) struct ListEntry {
    pub(crate) pattern: Pattern,
    pub(crate) line: usize,
    /// Byte range of the pattern in the policy document.
    pub(crate) span: Range<usize>,
}

impl PatternList {
    /// Creates the list of the key `allow`, `ask`, `resources` or `prompts`. `line` is the line of the key.
    pub(crate) fn for_allow(line: usize, entries: Vec<ListEntry>) -> Self {
        let by_name =
            PatternIndex::new(entries.iter().map(|entry| (entry.pattern.stem(), entry.pattern.is_starred())));
        Self { line, entries, by_name, by_canonical_uri: None }
    }

    /// Creates the list of the key `deny`. This list also matches other spellings of a denied URI, so that another
    /// spelling cannot evade the denial. `line` is the line of the key.
    pub(crate) fn for_deny(line: usize, entries: Vec<ListEntry>) -> Self {
        let plain: Vec<_> = entries
            .iter()
            .map(|entry| (canonical_uri(entry.pattern.stem()), entry.pattern.is_starred()))
            .collect();
        let by_canonical_uri =
            PatternIndex::new(plain.iter().map(|(stem, starred)| (stem.as_str(), *starred)));
        Self { by_canonical_uri: Some(by_canonical_uri), ..Self::for_allow(line, entries) }
    }

    /// Returns the entries of this list (`allow`, `ask`, `resources` or `prompts`) that apply to the target of a call,
    /// the most specific first. A URI with `..` can lead out of the folder with which it starts, so no entry that ends
    /// in `*` applies to such a URI.
    pub(crate) fn permits(&self, item: &CallTarget) -> impl Iterator<Item = &ListEntry> {
        let may_escape_folder = matches!(item, CallTarget::Resource(uri) if may_escape_folder(uri.as_str()));
        let fitting = self.by_name.matching(item.as_str()).filter_map(|number| self.entries.get(number));
        fitting.filter(move |entry| !(may_escape_folder && entry.pattern.is_starred()))
    }

    /// Returns the entries of this list (`deny`) that match the target of a call: first those that match its literal
    /// name, from the most specific to the least specific, then those that match only another spelling of its URI. A
    /// spelling such as with percent escapes counts if a server may treat the two URIs as the same.
    pub(crate) fn denies(&self, item: &CallTarget) -> impl Iterator<Item = &ListEntry> {
        let literally = self.by_name.matching(item.as_str());
        let plainly: Vec<usize> = match (item, &self.by_canonical_uri) {
            (CallTarget::Resource(uri), Some(index)) => {
                let known: Vec<usize> = self.by_name.matching(item.as_str()).collect();
                index
                    .matching(&canonical_uri(uri.as_str()))
                    .filter(|number| !known.contains(number))
                    .collect()
            }
            _ => Vec::new(),
        };
        literally.chain(plainly).filter_map(|number| self.entries.get(number))
    }

    /// Returns an entry that matches every name that `pattern` matches, or `None` if the list has no such entry.
    pub(crate) fn entry_covering(&self, pattern: &Pattern) -> Option<&ListEntry> {
        let exact = self.by_name.exact(pattern.stem()).filter(|_| !pattern.is_starred());
        let mut all = exact.chain(self.by_name.matching_prefixes(pattern.stem()));
        all.next().and_then(|number| self.entries.get(number))
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_protocol::ResourceUri;

    use super::*;
    use crate::pattern::PatternKind;

    #[test]
    fn a_denied_uri_is_denied_in_every_spelling() {
        let pattern = Pattern::parse(PatternKind::Anything, "file:///docs/private/*").unwrap();
        let deny = PatternList::for_deny(1, vec![ListEntry { pattern, line: 1, span: 0..0 }]);
        let denies = |uri: &str| deny.denies(&CallTarget::Resource(ResourceUri::new(uri).unwrap())).count();
        for uri in [
            "file:///docs/private/x",
            "FILE:///docs/Private/x",
            "file:///docs//private/x",
            "file:///docs/./private/x",
            "file:///docs/%70rivate/x",
            "file:///docs%2Fprivate%252Fx",
            "file:///docs\\private\\x",
        ] {
            assert_eq!(denies(uri), 1, "{uri}");
        }
        assert_eq!(denies("file:///docs/privately") + denies("file:///docs/x"), 0);
    }
}
