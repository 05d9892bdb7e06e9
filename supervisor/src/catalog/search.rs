//! Ranking tools by the words of a query.

use super::Tool;

/// Words of a query that count.
const WORDS_MAX: usize = 16;
/// Characters of a description that are searched: a search costs the same for a server that writes novels.
const SEARCHED_CHARS_MAX: usize = 600;
/// Tools that are scored before others get their turn.
const TURN: usize = 100;

/// The texts of a tool that are searched, in lower case, and what a hit in each is worth.
#[derive(Clone, Debug)]
pub(crate) struct Searched([(String, u32); 4]);

impl Searched {
    /// A word counts most in the tool's name, then in the summary, the parameters and the rest.
    pub(super) fn new(name: &str, summary: &str, parameters: &[String], description: &str) -> Self {
        let lower = |text: &str| text.chars().take(SEARCHED_CHARS_MAX).collect::<String>().to_lowercase();
        Self([
            (lower(name), 8),
            (lower(summary), 3),
            (lower(&parameters.join(" ")), 2),
            (lower(description), 1),
        ])
    }
}

/// Indices of the tools that match, best first. An empty query matches all, in their order.
pub(crate) async fn rank(query: &str, tools: &[(&str, &Tool)]) -> Vec<usize> {
    let query = query.to_lowercase();
    let words: Vec<&str> = split(&query).take(WORDS_MAX).collect();
    let mut scored: Vec<(u32, usize)> = Vec::new();
    for (index, (server, tool)) in tools.iter().enumerate() {
        let score = score(&words, server, &tool.searched);
        if words.is_empty() || score > 0 {
            scored.push((score, index));
        }
        if index % TURN == TURN - 1 {
            tokio::task::yield_now().await;
        }
    }
    scored.sort_by_key(|(score, index)| (std::cmp::Reverse(*score), *index));
    scored.into_iter().map(|(_, index)| index).collect()
}

fn score(words: &[&str], server: &str, searched: &Searched) -> u32 {
    let server = server.to_lowercase();
    let weight = |word: &str| -> u32 {
        let hit = |text: &str, weight: u32| {
            if !text.contains(word.strip_suffix('s').unwrap_or(word)) {
                return 0;
            }
            let whole = split(text).any(|other| other == word || other.strip_suffix('s') == Some(word));
            if whole { weight * 2 } else { weight }
        };
        searched.0.iter().map(|(text, weight)| hit(text, *weight)).sum::<u32>() + hit(&server, 5)
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

    #[tokio::test]
    async fn the_best_name_comes_first() {
        let tool = |name: &str, text: &str| {
            Tool::from_json(&json!({"name": name, "description": text}).to_string()).expect("a valid tool")
        };
        let tools = [
            tool("get_repo", "A repository"),
            tool("list_issues", "Issues of a repo"),
            tool("whoami", "You"),
        ];
        let offered: Vec<(&str, &Tool)> = tools.iter().map(|tool| ("github", tool)).collect();
        assert_eq!(rank("list issues", &offered).await[0], 1);
        assert_eq!(rank("repo", &offered).await[0], 0);
        assert_eq!(rank("", &offered).await.len(), 3);
        assert!(rank("zebra", &offered).await.is_empty());
    }
}
