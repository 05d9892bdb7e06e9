//! Finds the tools that a submitted program mentions. The supervisor sends the descriptions of these tools to the
//! worker together with the program, so that the worker need not request the list of a server's tools when the
//! program first uses one.
//!
//! The program is only scanned for words and not parsed here, because untrusted code is parsed only in a sandboxed
//! worker. A word that equals the name of a tool without being a use of the tool does no harm: the worker gets one
//! unused description. A tool that the scan does not find is requested by the worker.

use std::collections::HashSet;

use lockhouse_catalog::normalized;
use lockhouse_protocol::ServerName;
use serde_json::{Value, json};

use super::code_server::CodeServer;
use super::{Gate, RunContext};

/// Maximum number of bytes of a program that are scanned for names of tools; the rest of a longer program is ignored.
/// Bound: workers and programs.
const SCANNED_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of distinct words of a program that are looked up in the tool catalogues.
const WORDS_MAX: usize = 2_000;
/// Maximum number of tool descriptions that are sent with a program.
const ENTRIES_MAX: usize = 32;
/// Maximum total size, in bytes, of the tool descriptions that are sent with a program.
const ENTRIES_BYTES_MAX: usize = 64 * 1024;

impl Gate {
    /// Returns the descriptions of the tools that the program `code` mentions, as a JSON array. Each element is an
    /// array of the server, the mentioned name and the description. Includes a tool only if the program also
    /// mentions its server, the server is connected, and the run may see the tool. The result is empty if no
    /// tool meets these conditions.
    pub fn mentioned_tools(&self, run: &RunContext, code: &str) -> Vec<u8> {
        let servers = run.scope.servers();
        if servers.is_empty() {
            return Vec::new();
        }
        let words = words(code);
        let forms: HashSet<String> = words.iter().map(|word| normalized(word)).collect();
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for server in servers.iter().filter(|server| forms.contains(&normalized(server.as_str()))) {
            let Some(connection) = self.code_server(server) else { continue };
            for entry in self.entries_of(run, server, connection, &words) {
                bytes += entry.len();
                if entries.len() == ENTRIES_MAX || bytes > ENTRIES_BYTES_MAX {
                    break;
                }
                entries.push(entry);
            }
        }
        match entries.is_empty() {
            true => Vec::new(),
            false => format!("[{}]", entries.join(",")).into_bytes(),
        }
    }

    /// Returns the descriptions of the tools of one server whose names are among `words`. Each is the text of a
    /// JSON array of the server, the word and the description.
    fn entries_of(
        &self,
        run: &RunContext,
        server: &ServerName,
        connection: CodeServer<'_>,
        words: &HashSet<&str>,
    ) -> Vec<String> {
        let Some(catalogue) = connection.current_catalogue() else { return Vec::new() };
        let is_visible = self.visible_tool_filter(server, run.client(), &run.scope);
        let policy = self.policy.current();
        let found = words.iter().filter_map(|word| Some((*word, catalogue.tool_for_word(word)?)));
        let visible = found.filter(|(_, tool)| is_visible(tool)).take(ENTRIES_MAX);
        let entry = |(word, tool): (&str, &lockhouse_catalog::Tool)| {
            let asks = policy.may_require_approval(server, &tool.name, run.client());
            let entry: Value = tool.module_entry(&connection.describe_options(tool, asks, run.language));
            json!([server.as_str(), word, entry]).to_string()
        };
        visible.map(entry).collect()
    }
}

/// Returns the words of a program: sequences of letters, digits, `_` and `$`. Sequences that are joined by `-` are
/// also returned as one word, because names of tools and servers may contain `-`.
fn words(code: &str) -> HashSet<&str> {
    let scanned = &code[..code.floor_char_boundary(SCANNED_BYTES_MAX)];
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let joined = scanned.split(|c: char| !is_part(c) && c != '-').filter(|word| word.contains('-'));
    let plain = scanned.split(|c: char| !is_part(c));
    let mut words = HashSet::new();
    for word in plain.chain(joined).filter(|word| word.len() > 1) {
        words.insert(word);
        if words.len() == WORDS_MAX {
            break;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_names_and_strings() {
        let code = "from mcp_tools.git_hub import list_issues as li\nf('my-server', x-y)['é'].a";
        let mut found: Vec<&str> = words(code).into_iter().collect();
        found.sort_unstable();
        let expected = [
            "as",
            "from",
            "git_hub",
            "import",
            "li",
            "list_issues",
            "mcp_tools",
            "my",
            "my-server",
            "server",
            "x-y",
            "é",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_number_of_words_is_bounded() {
        let code: String = (0..100_000).map(|number| format!("w{number} ")).collect();
        assert!(words(&code).len() <= WORDS_MAX);
        assert!(
            words(&"é".repeat(SCANNED_BYTES_MAX)).len() == 1,
            "a character at the boundary is not divided"
        );
    }
}
