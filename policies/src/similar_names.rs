//! Suggests the correct name for a misspelled one.

/// The minimum Jaro-Winkler similarity to a misspelled name, from 0 to 1, at which a name is suggested.
const SIMILAR: f64 = 0.7;

/// Returns the name that is most similar to `unknown`, or `None` when none is similar enough to suggest.
pub fn most_similar_name<'a>(unknown: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.map(|name| (strsim::jaro_winkler(unknown, name), name));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(score, _)| *score >= SIMILAR).map(|(_, name)| name)
}
