//! Tests the example programs in `docs/writing-code.md`: each must return the answer in the JSON block that follows it.

use lockhouse_tests::{Lockhouse, Table, ensure};
use serde_json::Value;

use super::code_blocks::{Block, blocks, page};

const GUIDE: &str = "docs/writing-code.md";
const SERVERS: [&str; 8] = ["arxiv", "chroma", "gdrive", "github", "notes", "reports", "slack", "weather"];

/// Returns the documented answer of the program in the block with the index `program`: the next JSON block below the
/// same heading. Several programs may share one answer. Returns `Err` if no JSON block follows below that heading.
fn expected<'b>(blocks: &'b [Block], program: usize) -> Result<Value, String> {
    let block: &'b Block = &blocks[program];
    let answer = blocks[program..].iter().find(|other| other.language == "json");
    let answer =
        answer.filter(|answer| answer.heading == block.heading).ok_or("no answer stands below it")?;
    serde_json::from_str(&answer.text).map_err(|error| format!("line {}: {error}", answer.line))
}

#[tokio::test]
async fn every_program_of_the_guide_returns_its_documented_answer() {
    let page = page(GUIDE);
    let blocks = blocks(&page);
    let policy = blocks.iter().find(|block| block.language == "toml").expect("a policy");
    let lockhouse = Lockhouse::with_canned(&SERVERS, "any").policy(&policy.text);
    let session = lockhouse.serve().await;
    // The page assumes that the servers are connected.
    session.run_code("python", "from mcp_tools import search_tools\nsearch_tools('weather')").await;
    let mut table = Table::new(GUIDE);
    for (index, block) in blocks.iter().enumerate() {
        let language = match block.language.as_str() {
            "python" => "python",
            "ts" => "typescript",
            _ => continue,
        };
        let answer = session.run_code(language, &block.text).await;
        let outcome = expected(&blocks, index)
            .and_then(|expected| ensure(answer["status"] == "ok" && answer["value"] == expected, &answer));
        table.row(format!("line {}: {}: {language}", block.line, block.heading), outcome);
    }
    table.finish();
}

#[test]
fn every_guide_example_exists_in_both_languages() {
    let page = page(GUIDE);
    let blocks = blocks(&page);
    let mut table = Table::new("patterns");
    for heading in page.lines().filter_map(|line| line.strip_prefix("## ")) {
        let has = |language: &str| {
            blocks.iter().any(|block| block.heading == heading && block.language == language)
        };
        table.row(heading, ensure(has("python") == has("ts"), "one language is missing"));
    }
    table.finish();
}
