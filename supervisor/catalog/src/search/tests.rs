use serde_json::json;

use super::*;
use crate::Catalogue;

fn catalogue(tools: &[(&str, &str)]) -> Catalogue {
    let definitions: Vec<String> =
        tools.iter().map(|(name, text)| json!({"name": name, "description": text}).to_string()).collect();
    Catalogue::from_definitions(definitions.iter().map(String::as_str)).0
}

/// Returns the tools that the search finds, best first, as `server.tool`.
fn found(servers: &[(&str, &Catalogue)], query: &str) -> Vec<String> {
    let all: Vec<Vec<u16>> =
        servers.iter().map(|(_, catalogue)| (0..catalogue.tools.len() as u16).collect()).collect();
    search_permitted(servers, &all, query)
}

fn search_permitted(servers: &[(&str, &Catalogue)], permitted: &[Vec<u16>], query: &str) -> Vec<String> {
    let corpora: Vec<Corpus<'_>> = servers
        .iter()
        .zip(permitted)
        .map(|((server, catalogue), permitted)| Corpus { server, index: catalogue.index(), permitted })
        .collect();
    let name = |hit: &Hit| servers[hit.corpus].1.tools[usize::from(hit.tool)].name.to_string();
    rank(query, &corpora).iter().map(|hit| format!("{}.{}", servers[hit.corpus].0, name(hit))).collect()
}

fn github() -> Catalogue {
    catalogue(&[
        ("get_repo", "A repository"),
        ("list_issues", "Issues of a repo"),
        ("create_pull_request", "Opens a pull request"),
        ("whoami", "You"),
    ])
}

#[test]
fn tools_are_found_by_words_synonyms_and_misspellings() {
    let (github, files) = (github(), catalogue(&[("delete_file", "Takes a file away"), ("echo", "")]));
    let servers = [("github", &github), ("files", &files)];
    for (query, first) in [
        ("list issues", "github.list_issues"),
        ("Which tickets are there?", "github.list_issues"),
        ("repo", "github.get_repo"),
        ("repositories", "github.get_repo"),
        ("open a PR", "github.create_pull_request"),
        ("creating pull requests", "github.create_pull_request"),
        ("pulll request", "github.create_pull_request"),
        ("remove a file", "files.delete_file"),
        ("deleet", "files.delete_file"),
        ("who am I", "github.whoami"),
    ] {
        assert_eq!(found(&servers, query).first().map(String::as_str), Some(first), "{query}");
    }
    assert_eq!(found(&servers, "").len(), 6);
    assert_eq!(found(&servers, " ?! ").len(), 6);
    assert!(found(&servers, "zebra").is_empty());
}

#[test]
fn a_tool_named_in_the_query_ranks_first_in_any_spelling() {
    let one =
        catalogue(&[("list_issues_of_all_lists_of_issues", "list issues list issues"), ("list_issues", "")]);
    let two = catalogue(&[("list-issues", "list issues")]);
    let servers = [("git-hub", &one), ("lab", &two)];
    for name in ["list_issues", "listIssues", "list-issues"] {
        let mut first = found(&servers, name)[..2].to_vec();
        first.sort();
        assert_eq!(first, ["git-hub.list_issues", "lab.list-issues"], "{name}");
    }
    for name in
        ["lab.list_issues", "mcp__lab__list_issues", "lab/list-issues", "what does lab.list-issues do"]
    {
        assert_eq!(found(&servers, name)[0], "lab.list-issues", "{name}");
    }
    assert_eq!(found(&servers, "mcp__git-hub__list_issues")[0], "git-hub.list_issues");
}

#[test]
fn ties_are_ordered_by_server_and_name() {
    let same = catalogue(&[("b", "the same text"), ("a", "the same text")]);
    let servers = [("x", &same), ("y", &same)];
    assert_eq!(found(&servers, "same text"), ["x.a", "x.b", "y.a", "y.b"]);
}

#[test]
fn tools_that_are_not_permitted_are_never_found() {
    let github = github();
    let servers = [("github", &github)];
    for query in ["list_issues", "github.list_issues", "issue", "lisst isssues", ""] {
        let found = search_permitted(&servers, &[vec![0, 3]], query);
        assert!(!found.contains(&"github.list_issues".to_owned()), "{query}: {found:?}");
    }
}

#[test]
fn long_and_hostile_queries_are_answered_quickly() {
    let many: Vec<(String, String)> =
        (0..2_000).map(|n| (format!("tool_{n}"), format!("word{n} shared text of all"))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let many = catalogue(&many);
    let servers = [("many", &many)];
    for query in [
        "a_".repeat(500_000),
        "shared text ".repeat(100_000),
        "\u{0}\u{202e}é".repeat(1_000),
        "x".repeat(1_000_000),
    ] {
        found(&servers, &query);
    }
    assert_eq!(found(&servers, "word1999")[0], "many.tool_1999");
}
