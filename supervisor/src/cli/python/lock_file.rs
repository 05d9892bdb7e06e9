//! The lock file: a requirements file with the exact version and the hashes of each package.

use serde_json::Value;

const HEADER: &str = "# The packages of programs, with hashes. Written by `lockhouse python`; install it with --require-hashes.\n";

/// Why a lock file could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error("pip reported nothing that can be locked: {0}")]
    Report(&'static str),
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
    let (Some(name), Some(version), Some(hash)) =
        (metadata["name"].as_str(), metadata["version"].as_str(), hash)
    else {
        return Err(LockError::Report("a package in its report has no name, version or SHA-256"));
    };
    Ok(format!("{name}=={version} \\\n    --hash=sha256:{hash}\n"))
}

/// Returns the pinned packages of a lock file, each as its name and version.
pub(super) fn pins(lock_text: &str) -> Vec<(String, String)> {
    let pin = |line: &str| {
        let (name, rest) = line.split_once("==")?;
        let version = rest.split([' ', ';', '\\']).next()?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_pin = !name.is_empty() && name.chars().all(is_name) && !version.is_empty();
        is_pin.then(|| (name.to_owned(), version.to_owned()))
    };
    lock_text.lines().filter_map(pin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_pip_becomes_a_lock_file() {
        let report = r#"{"install": [
            {"metadata": {"name": "six", "version": "1.16.0"}, "download_info": {"archive_info": {"hashes": {"sha256": "ab"}}}},
            {"metadata": {"name": "attrs", "version": "24"}, "download_info": {"archive_info": {"hash": "sha256=cd"}}}]}"#;
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
}
