//! The fenced blocks of a page.

use std::path::Path;

/// One fenced block.
pub(crate) struct Block {
    /// The heading above it, and where it begins.
    pub(crate) heading: String,
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) text: String,
}

/// A page, from the root of the repository on.
pub(crate) fn page(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// In their order.
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
