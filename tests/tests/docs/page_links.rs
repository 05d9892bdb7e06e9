//! Tests that every relative link on a documentation page has a target.

use std::path::{Path, PathBuf};

use lockhouse_tests::{Table, ensure};

use super::code_blocks::{links, page};

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let below = |folder: &str| std::fs::read_dir(root.join(folder)).unwrap();
    let mut pages: Vec<PathBuf> =
        ["docs", "docs/security"].into_iter().flat_map(below).map(|entry| entry.unwrap().path()).collect();
    pages.extend(below("examples").map(|entry| entry.unwrap().path().join("README.md")));
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
            .map(|name| root.join(name)),
    );
    pages.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages.sort();
    pages
}

#[test]
fn every_relative_link_has_a_target() {
    let mut table = Table::new("relative links");
    for path in pages() {
        let text = page(path.to_str().unwrap());
        let lost: Vec<&str> =
            links(&text).into_iter().filter(|link| !path.parent().unwrap().join(link).exists()).collect();
        table.row(path.display().to_string(), ensure(lost.is_empty(), lost));
    }
    table.finish();
}
