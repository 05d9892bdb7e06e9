//! Finds one item, such as a run, a session or a stored result, by the id that the user typed, or by a prefix of it.

use lockhouse_policies::printable;

/// The maximum number of matching ids that an error lists.
pub(super) const LISTED_MAX: usize = 5;

/// The result of looking up an item by a name or id that the user typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Match<T> {
    One(T),
    None,
    /// Several items match the text that the user typed. The list contains all of them.
    Ambiguous(Vec<T>),
}

/// Finds the item whose id is `text`. If there is none, finds the only item whose id starts with `text`.
pub(super) fn find_by_prefix<T: Clone>(all: &[T], text: &str, id: impl Fn(&T) -> String) -> Match<T> {
    match find_exact(all, text, &id) {
        Match::None => single(all.iter().filter(|one| id(one).starts_with(text))),
        found => found,
    }
}

/// Finds the item whose id is exactly `text`. For ids that are numbers, a prefix must not be accepted: it could be the
/// complete id of an item that has ended meanwhile.
pub(super) fn find_exact<T: Clone>(all: &[T], text: &str, id: impl Fn(&T) -> String) -> Match<T> {
    single(all.iter().filter(|one| id(one) == text))
}

fn single<'a, T: Clone + 'a>(found: impl Iterator<Item = &'a T>) -> Match<T> {
    let mut found: Vec<T> = found.cloned().collect();
    match found.len() {
        0 => Match::None,
        1 => Match::One(found.remove(0)),
        _ => Match::Ambiguous(found),
    }
}

/// Renders the ids that an ambiguous prefix matches, for an error. Lists at most [`LISTED_MAX`] of them.
pub(super) fn list_candidates(ids: &[String]) -> String {
    let listed: Vec<String> = ids.iter().take(LISTED_MAX).map(|id| printable(id)).collect();
    let rest = if ids.len() > LISTED_MAX { ", and more" } else { "" };
    format!("{}{rest}", listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_name_matches_before_a_unique_prefix() {
        let all = ["report", "report-2", "chart"];
        let find = |text: &str| find_by_prefix(&all, text, |name| (*name).to_owned());
        assert_eq!(find("report"), Match::One("report"), "the exact name wins over a longer one");
        assert_eq!(find("report-"), Match::One("report-2"));
        assert_eq!(find("c"), Match::One("chart"));
        assert_eq!(find("rep"), Match::Ambiguous(vec!["report", "report-2"]));
        assert_eq!(find("art"), Match::None);
        let twice = ["report", "report"];
        assert!(matches!(find_by_prefix(&twice, "report", |name| (*name).to_owned()), Match::Ambiguous(_)));
    }

    #[test]
    fn an_id_does_not_match_by_prefix() {
        let all = ["7/10", "7/11"];
        let find = |text: &str| find_exact(&all, text, |id| (*id).to_owned());
        assert_eq!((find("7/1"), find("7/")), (Match::None, Match::None));
        assert_eq!(find("7/10"), Match::One("7/10"));
    }

    #[test]
    fn the_list_of_candidates_is_bounded() {
        let ids = |count: usize| (0..count).map(|id| id.to_string()).collect::<Vec<_>>();
        assert_eq!(list_candidates(&ids(2)), "0, 1");
        assert_eq!(list_candidates(&ids(LISTED_MAX)), "0, 1, 2, 3, 4");
        assert_eq!(list_candidates(&ids(LISTED_MAX + 2)), "0, 1, 2, 3, 4, and more");
    }
}
