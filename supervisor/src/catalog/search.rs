//! Ranking tools by the words of a query.

use super::Tool;

/// Words of a query that count.
const WORDS_MAX: usize = 16;

/// Indices of the tools that match, best first. An empty query matches all, in their order.
pub(crate) fn rank<'a>(query: &str, tools: impl Iterator<Item = (&'a str, &'a Tool)>) -> Vec<usize> {
    let query = query.to_lowercase();
    let words: Vec<&str> = split(&query).take(WORDS_MAX).collect();
    let mut scored: Vec<(u32, usize)> = tools
        .enumerate()
        .map(|(index, (server, tool))| (score(&words, server, tool), index))
        .filter(|(score, _)| words.is_empty() || *score > 0)
        .collect();
    scored.sort_by_key(|(score, index)| (std::cmp::Reverse(*score), *index));
    scored.into_iter().map(|(_, index)| index).collect()
}

/// A word counts most in the tool's name, then in the server's, the summary and the rest.
fn score(words: &[&str], server: &str, tool: &Tool) -> u32 {
    let name = tool.name.as_str().to_lowercase();
    let places = [
        (name, 8),
        (server.to_lowercase(), 5),
        (tool.summary.to_lowercase(), 3),
        (tool.parameters.join(" ").to_lowercase(), 2),
        (tool.description.to_lowercase(), 1),
    ];
    let weight = |word: &str| -> u32 {
        let hit = |(text, weight): &(String, u32)| {
            let whole = split(text).any(|other| other == word || other.strip_suffix('s') == Some(word));
            let part = text.contains(word.strip_suffix('s').unwrap_or(word));
            if whole { weight * 2 } else { u32::from(part) * weight }
        };
        places.iter().map(hit).sum()
    };
    let found: Vec<u32> = words.iter().map(|word| weight(word)).collect();
    // A tool that has every word goes before one that has a single word often.
    let distinct = found.iter().filter(|weight| **weight > 0).count() as u32;
    found.iter().sum::<u32>() + distinct * distinct * 4
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_best_name_comes_first() {
        let tool = |name: &str, text: &str| {
            Tool::from_json(&json!({"name": name, "description": text}).to_string()).expect("a valid tool")
        };
        let tools = [
            tool("get_repo", "A repository"),
            tool("list_issues", "Issues of a repo"),
            tool("whoami", "You"),
        ];
        let ranked = |query| rank(query, tools.iter().map(|tool| ("github", tool)));
        assert_eq!(ranked("list issues")[0], 1);
        assert_eq!(ranked("repo")[0], 0);
        assert_eq!(ranked("").len(), 3);
        assert!(ranked("zebra").is_empty());
    }
}
