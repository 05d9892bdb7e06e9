//! What somebody may have meant by a name that does not exist.

/// From here on a name is taken for a slip of another one. From 0 to 1, as Jaro-Winkler has it.
const SIMILAR: f64 = 0.7;

/// The name that is most like `wanted`, if any is like it.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.map(|name| (strsim::jaro_winkler(wanted, name), name));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(score, _)| *score >= SIMILAR).map(|(_, name)| name)
}
