//! The package indexes that an installer used, from its output.

use url::Url;

/// The index that pip uses unless its settings name others. pip does not mention it.
const PYPI: &str = "https://pypi.org/simple";
/// The beginning of a comment of uv in a lock file that names the index of a package.
const ANNOTATION: &str = "# from ";

/// Removes uv's comments about indexes from the text of a lock file. Returns the text, and the indexes.
pub(super) fn take_annotations(lock_text: &str) -> (String, Vec<String>) {
    let index = |line: &str| line.trim_start().strip_prefix(ANNOTATION).map(without_credentials);
    let mut indexes: Vec<String> = lock_text.lines().filter_map(index).collect();
    indexes.sort();
    indexes.dedup();
    let kept = lock_text.lines().filter(|line| index(line).is_none());
    (kept.map(|line| format!("{line}\n")).collect(), indexes)
}

/// Returns the indexes and folders that pip says it looks in.
pub(super) fn of_pip(output: &str) -> Vec<String> {
    let places = |words: &str| output.lines().find_map(|line| Some(line.strip_prefix(words)?.split(", ")));
    let [indexes, links] = ["Looking in indexes: ", "Looking in links: "].map(places);
    let found: Vec<String> =
        indexes.into_iter().chain(links.clone()).flatten().map(without_credentials).collect();
    if found.is_empty() { vec![PYPI.to_owned()] } else { found }
}

/// Returns an address without the user and password that it may contain.
fn without_credentials(address: &str) -> String {
    let Ok(mut url) = Url::parse(address.trim()) else { return address.trim().to_owned() };
    let _ = (url.set_username(""), url.set_password(None));
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_named_without_their_credentials() {
        let lock = "six==1.17.0 \\\n    --hash=sha256:ab\n    # from https://ann:SEKRET@mirror.test/simple\nx==1\n    # from https://mirror.test/simple\n# mine\n";
        let (kept, indexes) = take_annotations(lock);
        assert_eq!(kept, "six==1.17.0 \\\n    --hash=sha256:ab\nx==1\n# mine\n");
        assert_eq!(indexes, ["https://mirror.test/simple"]);
        let said = "Looking in indexes: https://a:b@one.test/simple, https://two.test/\nLooking in links: /srv/wheels\nCollecting six\n";
        assert_eq!(of_pip(said), ["https://one.test/simple", "https://two.test/", "/srv/wheels"]);
        assert_eq!(of_pip("Collecting six\n"), [PYPI]);
    }
}
