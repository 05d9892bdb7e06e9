//! The lists of a server's table: patterns, each with the line it stands on.

use std::ops::Range;

use crate::index::Index;
use crate::item::Item;
use crate::pattern::{Pattern, climbs, plain};

/// A list of patterns.
#[derive(Clone, Debug)]
pub(crate) struct List {
    /// The line of the list's key.
    pub(crate) line: usize,
    pub(crate) entries: Vec<Entry>,
    by_name: Index,
    /// By what [`plain`] makes of it. Of a list that denies.
    by_plain_name: Option<Index>,
}

/// A pattern at its place.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) pattern: Pattern,
    pub(crate) line: usize,
    /// Where the pattern starts and ends in the text.
    pub(crate) span: Range<usize>,
}

impl List {
    /// One that permits.
    pub(crate) fn permitting(line: usize, entries: Vec<Entry>) -> Self {
        let by_name =
            Index::of(entries.iter().map(|entry| (entry.pattern.stem(), entry.pattern.is_starred())));
        Self { line, entries, by_name, by_plain_name: None }
    }

    /// One that denies.
    pub(crate) fn denying(line: usize, entries: Vec<Entry>) -> Self {
        let plain: Vec<_> =
            entries.iter().map(|entry| (plain(entry.pattern.stem()), entry.pattern.is_starred())).collect();
        let by_plain_name = Index::of(plain.iter().map(|(stem, starred)| (stem.as_str(), *starred)));
        Self { by_plain_name: Some(by_plain_name), ..Self::permitting(line, entries) }
    }

    /// What permits it, the most specific first. A URI that climbs by `..` is somewhere else than its beginning says, so
    /// no beginning permits it.
    pub(crate) fn permits(&self, item: &Item) -> impl Iterator<Item = &Entry> {
        let climbs = matches!(item, Item::Resource(uri) if climbs(uri.as_str()));
        let fitting = self.by_name.fitting(item.as_str()).filter_map(|number| self.entries.get(number));
        fitting.filter(move |entry| !(climbs && entry.pattern.is_starred()))
    }

    /// What denies it, the most specific first. A URI is denied in whatever other spelling a server may take for the same.
    pub(crate) fn denies(&self, item: &Item) -> impl Iterator<Item = &Entry> {
        let literally = self.by_name.fitting(item.as_str());
        let plainly: Vec<usize> = match (item, &self.by_plain_name) {
            (Item::Resource(uri), Some(index)) => {
                let known: Vec<usize> = self.by_name.fitting(item.as_str()).collect();
                index.fitting(&plain(uri.as_str())).filter(|number| !known.contains(number)).collect()
            }
            _ => Vec::new(),
        };
        literally.chain(plainly).filter_map(|number| self.entries.get(number))
    }

    /// The first entry that covers all that a pattern means.
    pub(crate) fn covering(&self, pattern: &Pattern) -> Option<&Entry> {
        let exact = self.by_name.exact(pattern.stem()).filter(|_| !pattern.is_starred());
        let mut all = exact.chain(self.by_name.beginning(pattern.stem()));
        all.next().and_then(|number| self.entries.get(number))
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_protocol::ResourceUri;

    use super::*;
    use crate::pattern::Subject;

    #[test]
    fn what_is_denied_is_denied_in_every_spelling() {
        let pattern = Pattern::parse(Subject::Anything, "file:///docs/private/*").unwrap();
        let deny = List::denying(1, vec![Entry { pattern, line: 1, span: 0..0 }]);
        let denies = |uri: &str| deny.denies(&Item::Resource(ResourceUri::new(uri).unwrap())).count();
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
