//! Finds the fenced code blocks and the links of a documentation page.

use std::path::Path;

/// One fenced code block of a Markdown page.
pub(crate) struct Block {
    /// The text of the last `## ` heading above the code block; empty if there is none.
    pub(crate) heading: String,
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) text: String,
}

/// Reads a documentation page. `path` is relative to the root of the repository.
pub(crate) fn page(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// Returns the fenced code blocks of a Markdown page, in their order on the page.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut heading) = (Vec::new(), String::new());
    let mut open: Option<Block> = None;
    for (index, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, Some(language)) => {
                let (heading, language) = (heading.clone(), language.to_owned());
                open = Some(Block { heading, line: index + 1, language, text: String::new() });
            }
            (None, None) => heading = line.strip_prefix("## ").map_or(heading, str::to_owned),
        }
    }
    assert!(open.is_none(), "a block that never ends");
    blocks
}

/// Returns the targets of all relative links on a Markdown page, without their `#` anchors.
pub(crate) fn links(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets.filter(|target| !target.is_empty() && !target.contains(':')).collect()
}
