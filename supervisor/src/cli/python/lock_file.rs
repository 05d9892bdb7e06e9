//! The lock file: a requirements file with the exact version and the hashes of each package.

use serde_json::Value;

/// Maximum number of characters of an installer's text in an error.
const LINE_CHARS_MAX: usize = 200;
const HEADER: &str = "# The packages of programs, with hashes. Written by `lockhouse python`; install it with --require-hashes.\n";

/// Why a lock file could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error("pip reported nothing that can be locked: {0}")]
    Report(&'static str),
    #[error(
        "{0} would not be installed as a built distribution (wheel) of an index: its code would run during the installation"
    )]
    NoWheel(String),
}

/// Checks that a lock file of uv has nothing but versions of packages and their hashes: other lines name source code.
pub(super) fn check(lock_text: &str) -> Result<(), LockError> {
    let is_plain = |line: &&str| {
        let line = line.trim_start();
        line.is_empty()
            || line.starts_with(['#'])
            || line.starts_with("--hash=sha256:")
            || pin(line).is_some()
    };
    match lock_text.lines().find(|line| !is_plain(line)) {
        Some(line) => Err(LockError::NoWheel(line.chars().take(LINE_CHARS_MAX).collect())),
        None => Ok(()),
    }
}

/// Converts pip's report of a resolution (`--report`) to the text of a lock file.
pub(super) fn from_pip_report(report: &str) -> Result<String, LockError> {
    let report: Value =
        serde_json::from_str(report).map_err(|_| LockError::Report("its report is no JSON"))?;
    let items = report["install"].as_array().ok_or(LockError::Report("its report has no list `install`"))?;
    let mut lines: Vec<String> = items.iter().map(locked_line).collect::<Result<_, _>>()?;
    lines.sort_unstable();
    Ok(format!("{HEADER}{}", lines.concat()))
}

fn locked_line(item: &Value) -> Result<String, LockError> {
    let metadata = &item["metadata"];
    let archive = &item["download_info"]["archive_info"];
    let hash = archive["hashes"]["sha256"].as_str();
    let hash = hash.or_else(|| archive["hash"].as_str()?.strip_prefix("sha256="));
    let address = item["download_info"]["url"].as_str().unwrap_or_default();
    let is_wheel = address.split(['#', '?']).next().is_some_and(|path| path.ends_with(".whl"));
    if !is_wheel || item["is_direct"] == true {
        let name = metadata["name"].as_str().unwrap_or("a package");
        return Err(LockError::NoWheel(name.chars().take(LINE_CHARS_MAX).collect()));
    }
    let (Some(name), Some(version), Some(hash)) =
        (metadata["name"].as_str(), metadata["version"].as_str(), hash)
    else {
        return Err(LockError::Report("a package in its report has no name, version or SHA-256"));
    };
    Ok(format!("{name}=={version} \\\n    --hash=sha256:{hash}\n"))
}

/// Returns the pinned packages of a lock file, each as its name and version.
pub(super) fn pins(lock_text: &str) -> Vec<(String, String)> {
    lock_text.lines().filter_map(pin).collect()
}

fn pin(line: &str) -> Option<(String, String)> {
    let (name, rest) = line.split_once("==")?;
    let version = rest.split([' ', ';', '\\']).next()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_pin = !name.is_empty() && name.chars().all(is_name) && !version.is_empty();
    is_pin.then(|| (name.to_owned(), version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_pip_becomes_a_lock_file() {
        let report = r#"{"install": [
            {"metadata": {"name": "six", "version": "1.16.0"}, "download_info": {"url": "https://i.test/six.whl", "archive_info": {"hashes": {"sha256": "ab"}}}},
            {"metadata": {"name": "attrs", "version": "24"}, "download_info": {"url": "https://i.test/attrs.whl#x", "archive_info": {"hash": "sha256=cd"}}}]}"#;
        let lock = from_pip_report(report).expect("a lock file");
        assert!(
            lock.ends_with("attrs==24 \\\n    --hash=sha256:cd\nsix==1.16.0 \\\n    --hash=sha256:ab\n"),
            "{lock}"
        );
        let expected =
            [("attrs", "24"), ("six", "1.16.0")].map(|(name, version)| (name.into(), version.into()));
        assert_eq!(pins(&lock), expected);
        for report in ["[]", "x", r#"{"install": [{"metadata": {"name": "a", "version": "1"}}]}"#] {
            assert!(from_pip_report(report).is_err(), "{report}");
        }
    }

    #[test]
    fn only_wheels_of_an_index_are_locked() {
        let report = |url: &str, is_direct: bool| {
            let archive = r#""archive_info": {"hashes": {"sha256": "ab"}}"#;
            from_pip_report(&format!(
                r#"{{"install": [{{"metadata": {{"name": "a", "version": "1"}}, "is_direct": {is_direct}, "download_info": {{"url": "{url}", {archive}}}}}]}}"#
            ))
        };
        assert!(report("https://i.test/a-1.whl", false).is_ok());
        for (url, is_direct) in [("https://i.test/a-1.tar.gz", false), ("https://other.test/a-1.whl", true)] {
            assert!(matches!(report(url, is_direct), Err(LockError::NoWheel(name)) if name == "a"), "{url}");
        }
        assert!(check("# x\n\na==1 \\\n    --hash=sha256:ab\n").is_ok());
        for line in
            ["a @ file:///a", "-e ./a", "./a", "--index-url https://i.test", "a @ git+https://i.test/a==1"]
        {
            assert!(check(&format!("b==1\n{line}\n")).is_err(), "{line}");
        }
    }
}
