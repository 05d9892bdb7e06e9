//! Tests that `docs/for-models.md` quotes the definitions of Lockhouse's MCP tools word for word.

use lockhouse_tests::{Lockhouse, Table, ensure};

use super::code_blocks::{blocks, page};

const GUIDE: &str = "docs/for-models.md";

#[tokio::test]
async fn the_guide_for_models_quotes_the_tool_definitions() {
    let session = Lockhouse::new().serve().await;
    let page = page(GUIDE);
    let blocks = blocks(&page);
    let mut table = Table::new("tool definitions and the guide");
    let has = |reported: &str| {
        blocks.iter().any(|block| block.language == "text" && block.text.trim_end() == reported)
    };
    let row = |reported: &str| {
        ensure(has(reported), format!("docs/for-models.md needs this block of text:\n{reported}\n"))
    };
    let (_, instructions) = session.server();
    table.row("instructions", row(&instructions.unwrap_or_default()));
    for tool in session.tools().await {
        table.row(tool.name.to_string(), row(&tool.description.unwrap_or_default()));
        let printed = |name: &String| page.contains(&format!("`{name}`"));
        let parameters =
            tool.input_schema.get("properties").and_then(|parameters| parameters.as_object()).unwrap();
        let missing: Vec<&String> = parameters.keys().filter(|name| !printed(name)).collect();
        table.row(format!("{}: its parameters", tool.name), ensure(missing.is_empty(), missing));
    }
    table.finish();
}
