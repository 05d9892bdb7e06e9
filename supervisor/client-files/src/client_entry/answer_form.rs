//! The form of answers that an AI client's Lockhouse entry selects, and existing entries that select a wrong one.

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;
use lockhouse_base::text_files::read_source;
use lockhouse_config::dialects::{Node, Table, Value, get_path, parse_as};
use lockhouse_config::{Environment, shell_quote};
use lockhouse_front::AnswerForm;
use lockhouse_policies::Source;

use super::{AiClient, own_place};
use crate::entry_moves::syntax;

/// The path of the key in Qwen Code's settings that switches its code mode on.
const QWEN_CODE_MODE: [&str; 2] = ["tools", "codeModeOnly"];

/// Returns the form of answers that the entry of an AI client needs, if it is not the default, which is for models.
/// `root` is the content of the client's file. Only a client whose file switches its code mode on gets the form for
/// programs: in OpenCode, an environment variable does, which Lockhouse cannot see. Codex needs no form, since it marks
/// the calls of its programs. Gemini CLI takes every JSON answer for an object.
pub(super) fn answer_form(client: AiClient, root: &Table) -> Option<AnswerForm> {
    let is_on =
        |path: &[&str]| get_path(root, path).is_some_and(|node| matches!(node.value, Value::Flag(true)));
    match client {
        AiClient::Gemini => Some(AnswerForm::Labelled),
        AiClient::Qwen if is_on(&QWEN_CODE_MODE) => Some(AnswerForm::Value),
        _ => None,
    }
}

/// A Lockhouse entry that selects the form of answers for programs, in the file of an AI client whose model calls the
/// tools. The model does not see printed output, and not what a failed run may have changed.
pub struct UnsuitableEntry {
    pub client: AiClient,
    pub path: PathBuf,
    /// The command that rewrites the entry.
    pub command: String,
}

impl fmt::Display for UnsuitableEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.client {
            AiClient::Codex => "Codex marks the calls of its programs itself",
            _ => "that file switches no code mode on",
        };
        write!(
            f,
            "the entry for Lockhouse of {} in {} has `--answer {}`, a form of answers for programs, but {reason}; `{}` rewrites it",
            self.client.name(),
            self.path.display(),
            AnswerForm::Value.as_str(),
            self.command
        )
    }
}

/// Finds the entries of all AI clients of this user that select the form for programs without need. Files that cannot be
/// read are skipped.
pub fn unsuitable_entries(environment: &Environment) -> Vec<UnsuitableEntry> {
    let clients = AiClient::value_variants().iter();
    let files =
        clients.flat_map(|client| client.existing_files(environment).into_iter().map(|path| (*client, path)));
    let found = files.filter_map(|(client, path)| {
        let command = rewriting_command(client, &read_source(&path).ok()?)?;
        Some(UnsuitableEntry { client, path, command })
    });
    found.collect()
}

/// Returns the command that rewrites the Lockhouse entry in an AI client's file, with the options that the entry has.
/// `None` if the file has no such entry, if its form of answers is suitable, or if `lockhouse init` does not rewrite it.
fn rewriting_command(client: AiClient, source: &Source) -> Option<String> {
    if client == AiClient::Continue {
        return None;
    }
    let root = parse_as(source, syntax(client)).ok()?;
    let root = root.table()?;
    let place = own_place(client, source);
    let keys: Vec<&str> = place.section.iter().chain([&place.name]).map(String::as_str).collect();
    let entry = get_path(root, &keys)?.table()?;
    let arguments = [["args"].as_slice(), &["command"], &["transport", "args"]];
    let arguments = arguments.iter().find_map(|path| get_path(entry, path)?.list())?;
    let arguments: Vec<&str> = arguments.iter().filter_map(Node::text).collect();
    let selects = |form: AnswerForm| {
        let pairs = arguments.windows(2).map(|pair| pair == ["--answer", form.as_str()]);
        let joined =
            arguments.iter().map(|argument| argument.strip_prefix("--answer=") == Some(form.as_str()));
        pairs.chain(joined).any(|is_selected| is_selected)
    };
    if !selects(AnswerForm::Value) || answer_form(client, root) == Some(AnswerForm::Value) {
        return None;
    }
    let name = client.to_possible_value()?;
    let mut command = vec!["lockhouse init --client".to_owned(), name.get_name().to_owned()];
    let next = arguments.iter().skip(1).map(Some).chain([None]);
    for (argument, next) in arguments.iter().zip(next) {
        let (option, value) = match (argument.split_once('='), next) {
            (Some((option, value)), _) => (option, value),
            (None, Some(value)) => (*argument, *value),
            (None, None) => continue,
        };
        let option = match option {
            "--expose" => "--mode",
            "--config" | "--policy" | "--servers" | "--trust-owner" => option,
            _ => continue,
        };
        command.extend([option.to_owned(), shell_quote(value)]);
    }
    Some(command.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_keeps_the_options_of_the_entry() {
        let command = |client, text: &str| {
            rewriting_command(client, &Source { path: "file".into(), text: text.into() })
        };
        let init = |rest: &str| Some(format!("lockhouse init --client {rest}"));
        for (client, text, expected) in [
            (
                AiClient::Opencode,
                r#"{"mcp": {"lockhouse": {"command": ["x", "serve", "--answer", "value"]}}}"#,
                init("opencode"),
            ),
            (
                AiClient::Opencode,
                r#"{"mcp": {"lockhouse": {"command": ["x", "serve", "--answer", "text"]}}}"#,
                None,
            ),
            (
                AiClient::Opencode,
                r#"{"mcp": {"other": {"command": ["x", "serve", "--answer", "value"]}}}"#,
                None,
            ),
            (
                AiClient::Qwen,
                r#"{"mcpServers": {"lockhouse": {"args": ["serve", "--expose", "both", "--config", "/c", "--answer=value"]}}}"#,
                init("qwen --mode both --config /c"),
            ),
            (
                AiClient::Qwen,
                r#"{"mcpServers": {"lockhouse": {"args": ["serve", "--trust-owner", "1000", "--config=/my files/c.toml", "--policy", "/it's", "--answer", "value"]}}}"#,
                init(r"qwen --trust-owner 1000 --config '/my files/c.toml' --policy '/it'\''s'"),
            ),
            (
                AiClient::Qwen,
                r#"{"tools": {"codeModeOnly": true}, "mcpServers": {"lockhouse": {"args": ["serve", "--answer", "value"]}}}"#,
                None,
            ),
            (
                AiClient::Cline,
                r#"{"mcpServers": {"lockhouse": {"transport": {"args": ["serve", "--answer", "value"]}}}}"#,
                init("cline"),
            ),
            (
                AiClient::Codex,
                "[mcp_servers.lockhouse]\nargs = ['serve', '--answer', 'value']",
                init("codex"),
            ),
            (
                AiClient::Codex,
                "features.code_mode = true\n[mcp_servers.lockhouse]\nargs = ['serve', '--answer', 'value']",
                init("codex"),
            ),
            (
                AiClient::Continue,
                "mcpServers:\n  - name: lockhouse\n    args: [\"serve\", \"--answer\", \"value\"]\n",
                None,
            ),
            (AiClient::Cursor, "{", None),
        ] {
            assert_eq!(command(client, text), expected, "{text}");
        }
    }
}
