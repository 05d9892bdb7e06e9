//! `docs/for-models.md` says what the definitions of the tools say, word for word.

use lockhouse_tests::{Lockhouse, Table, ensure};

use super::blocks::{blocks, page};

const GUIDE: &str = "docs/for-models.md";

#[tokio::test]
async fn the_guide_for_models_has_the_words_of_the_tools() {
    let session = Lockhouse::new().serve().await;
    let page = page(GUIDE);
    let blocks = blocks(&page);
    let mut table = Table::new("what an AI client is told, and the guide");
    let has =
        |told: &str| blocks.iter().any(|block| block.language == "text" && block.text.trim_end() == told);
    let row =
        |told: &str| ensure(has(told), format!("docs/for-models.md needs this block of text:\n{told}\n"));
    let (_, instructions) = session.server();
    table.row("instructions", row(&instructions.unwrap_or_default()));
    for tool in session.tools().await {
        table.row(tool.name.to_string(), row(&tool.description.unwrap_or_default()));
        let shown = |name: &String| page.contains(&format!("`{name}`"));
        let parameters =
            tool.input_schema.get("properties").and_then(|parameters| parameters.as_object()).unwrap();
        let missing: Vec<&String> = parameters.keys().filter(|name| !shown(name)).collect();
        table.row(format!("{}: its parameters", tool.name), ensure(missing.is_empty(), missing));
    }
    table.finish();
}
