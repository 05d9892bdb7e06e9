//! Follows the pages of a list of an upstream server until the list ends, or a limit is reached.

use std::collections::HashSet;

/// Maximum number of pages of one list of a server.
/// Bound: tools and searches.
const PAGES_MAX: usize = 100;
/// Maximum total size in bytes of the pages of one list. If it is exceeded, no further page is requested.
/// Bound: tools and searches.
const PAGES_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum size in bytes of a page cursor, which the request for the next page repeats. If it is exceeded, no further
/// page is requested.
/// Bound: tools and searches.
const CURSOR_BYTES_MAX: usize = 8 * 1024;

/// The pages of one list that were requested so far.
#[derive(Default)]
pub(super) struct ListPages {
    /// The cursor of the page to request next; `None` for the first page.
    cursor: Option<String>,
    requested_cursors: HashSet<String>,
    pages: usize,
    bytes: usize,
}

/// What follows after a page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterPage {
    RequestNext,
    /// The list has no further page.
    Complete,
    /// The list has further pages, which are not requested because a limit is reached.
    LimitReached,
}

impl ListPages {
    pub(super) fn cursor(&self) -> Option<String> {
        self.cursor.clone()
    }

    /// Records a received page of `bytes` bytes that names the cursor of the next page. An empty cursor ends the list, and
    /// so does a cursor whose page was requested already: some servers name one on their last page, or always the same.
    pub(super) fn record(&mut self, bytes: usize, next: Option<String>) -> AfterPage {
        self.pages += 1;
        self.bytes += bytes;
        let Some(next) = next.filter(|next| !next.is_empty() && !self.requested_cursors.contains(next))
        else {
            return AfterPage::Complete;
        };
        if self.pages == PAGES_MAX || self.bytes > PAGES_BYTES_MAX || next.len() > CURSOR_BYTES_MAX {
            return AfterPage::LimitReached;
        }
        self.requested_cursors.insert(next.clone());
        self.cursor = Some(next);
        AfterPage::RequestNext
    }
}

#[cfg(test)]
mod tests {
    use super::AfterPage::{Complete, LimitReached, RequestNext};
    use super::*;

    #[test]
    fn a_list_ends_without_a_new_cursor() {
        for (cursors, expected) in [
            (&[None][..], Complete),
            (&[Some("")], Complete),
            (&[Some("a")], RequestNext),
            (&[Some("a"), Some("b")], RequestNext),
            (&[Some("a"), Some("b"), None], Complete),
            (&[Some("a"), Some("a")], Complete),
            (&[Some("a"), Some("b"), Some("a")], Complete),
        ] {
            let mut pages = ListPages::default();
            let steps: Vec<_> = cursors.iter().map(|next| pages.record(1, next.map(str::to_owned))).collect();
            assert_eq!(steps.last(), Some(&expected), "{cursors:?}");
        }
    }

    #[test]
    fn pages_bytes_and_cursors_are_bounded() {
        let mut pages = ListPages::default();
        let steps: Vec<_> = (1..=PAGES_MAX).map(|page| pages.record(1, Some(page.to_string()))).collect();
        assert!(steps[..PAGES_MAX - 1].iter().all(|step| *step == RequestNext));
        assert_eq!(steps[PAGES_MAX - 1], LimitReached);
        let next = |cursor: &str, bytes| ListPages::default().record(bytes, Some(cursor.to_owned()));
        assert_eq!(next("a", PAGES_BYTES_MAX), RequestNext);
        assert_eq!(next("a", PAGES_BYTES_MAX + 1), LimitReached);
        assert_eq!(next(&"a".repeat(CURSOR_BYTES_MAX), 1), RequestNext);
        assert_eq!(next(&"a".repeat(CURSOR_BYTES_MAX + 1), 1), LimitReached);
    }
}
