//! Snapshot tests: each test reads a servers file of an AI client, and compares the resulting server definitions with a
//! stored snapshot.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use lockhouse_policies::Source;
use lockhouse_upstream::{
    Authorization, Endpoint, HttpEndpoint, HttpTransport, OAuthClient, ServerCommand, ServerDefinition,
    ServerLimits,
};

use super::document_tree::parse_toml;
use super::{Author, ListedServer, read, read_own};
use crate::placeholders::Environment;

/// The home directory that the test files contain. The tests replace it by a temporary directory before parsing, and
/// put it back into the output.
const HOME: &str = "/home/ada";

pub(super) fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/dialects")
}

struct Fixture {
    home: tempfile::TempDir,
    environment: Environment,
}

impl Fixture {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        std::fs::write(home.path().join("key.txt"), "key from a file\n").expect("a file");
        std::fs::write(home.path().join("cursor.env"), "FROM_FILE=1\nTOKEN=overridden\n").expect("a file");
        let path = home.path().to_str().expect("UTF-8");
        let variables = [
            ("HOME", path),
            ("GITHUB_TOKEN", "value of GITHUB_TOKEN"),
            ("MODE", "mode"),
            ("LOCKHOUSE_INPUT_GIVEN", "given input"),
            ("CREDENTIALS_DIRECTORY", path),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let environment = Environment {
            variables,
            home: Some(path.into()),
            directory: "/srv/app".into(),
            ..Environment::default()
        };
        Self { home, environment }
    }

    fn home_path(&self) -> &str {
        self.home.path().to_str().expect("UTF-8")
    }

    fn source(&self, name: &str) -> Source {
        let text =
            std::fs::read_to_string(files().join(name)).expect("a file").replace(HOME, self.home_path());
        Source { path: format!("{}/{name}", self.home_path()), text }
    }

    fn describe_listed(&self, listed: &ListedServer, source: &Source) -> String {
        let origin = format!("{}:{}", source.path, listed.line);
        let definition = listed
            .entry
            .clone()
            .and_then(|entry| entry.resolve(&self.environment, ServerLimits::default(), origin));
        let text = match definition {
            Ok(definition) => describe(&definition),
            Err(reason) => format!("left out: {reason}\n"),
        };
        let not_imported = listed.entry.iter().flat_map(|entry| &entry.not_imported);
        let not_imported: String = not_imported.map(|lost| format!("not imported: {lost}\n")).collect();
        format!("{} (line {})\n{}", listed.name, listed.line, indented(&(text + &not_imported)))
    }

    fn read(&self, name: &str) -> String {
        let source = self.source(name);
        let text = match read(&source, &self.environment) {
            Err(faults) => faults.to_string(),
            Ok(None) => "lists no servers".to_owned(),
            Ok(Some(listing)) => {
                let servers = listing.servers.iter().map(|listed| self.describe_listed(listed, &source));
                format!("{:?}\n{}", listing.dialect, servers.collect::<String>())
            }
        };
        text.replace(self.home_path(), HOME)
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn describe(definition: &ServerDefinition) -> String {
    let mut text = match &definition.endpoint {
        Endpoint::Stdio(command) => describe_command(command),
        Endpoint::Socket(path) => format!("connects to {}\n", path.display()),
        Endpoint::Http(endpoint) => describe_endpoint(endpoint),
    };
    let ours = ServerLimits::default();
    if definition.limits != ours {
        writeln!(text, "{:?}", definition.limits).expect("text");
    }
    if definition.start != Default::default() {
        writeln!(text, "{:?}", definition.start).expect("text");
    }
    if definition.tools != Default::default() {
        writeln!(text, "{:?}", definition.tools).expect("text");
    }
    text
}

fn pairs(name: &str, pairs: &BTreeMap<String, String>) -> String {
    pairs.iter().map(|(key, value)| format!("{name} {key} = {value:?}\n")).collect()
}

fn describe_command(command: &ServerCommand) -> String {
    let mut text = format!("runs {:?} {:?}\n", command.program, command.arguments);
    text += &pairs("env", &command.environment);
    if let Some(directory) = &command.directory {
        text += &format!("in {}\n", directory.display());
    }
    if let Some(confinement) = &command.confinement {
        text += &format!("{confinement:?}\n");
    }
    text
}

fn describe_endpoint(endpoint: &HttpEndpoint) -> String {
    let client = |client: &OAuthClient| {
        format!(
            "id {:?} secret {:?} key {:?} {:?} scopes {:?} port {:?}",
            client.client_id,
            client.client_secret,
            client.private_key,
            client.signing_algorithm,
            client.scopes,
            client.callback_port
        )
    };
    let authorization = match &endpoint.authorization {
        Authorization::OnDemand => "on demand".to_owned(),
        Authorization::Bearer(token) => format!("bearer {token:?}"),
        Authorization::OAuth(settings) => format!("OAuth {}", client(settings)),
        Authorization::ClientCredentials(settings) => format!("client credentials {}", client(settings)),
    };
    let HttpEndpoint { url, transport, headers, .. } = endpoint;
    let transport = if *transport == HttpTransport::Sse { " over HTTP+SSE" } else { "" };
    format!("at {url}{transport}\n{}authorization {authorization}\n", pairs("header", headers))
}

#[test]
fn every_client_s_file_is_read_as_its_client_reads_it() {
    let fixture = Fixture::new();
    for name in [
        "claude_desktop.json",
        "claude_code.json",
        "cursor.json",
        "vscode.jsonc",
        "vscode_settings.jsonc",
        "cline.json",
        "codex.toml",
        "continue.yaml",
        "copilot.json",
        "gemini.json",
        "windsurf.json",
        "zed.jsonc",
        "opencode.jsonc",
        "opencode_2.jsonc",
        "seed_coordinator.json",
        "seed_code_mode.json",
        "own.toml",
    ] {
        insta::assert_snapshot!(name, fixture.read(name));
    }
}

#[test]
fn what_cannot_be_read_is_reported_with_its_line_and_without_values() {
    let fixture = Fixture::new();
    let mut names: Vec<_> = std::fs::read_dir(files().join("bad")).expect("files").collect();
    names.sort_by_key(|entry| entry.as_ref().map(std::fs::DirEntry::file_name).unwrap_or_default());
    for entry in names {
        let name = format!("bad/{}", entry.expect("an entry").file_name().to_string_lossy());
        let text = fixture.read(&name);
        assert!(!text.replace("${SEKRET}", "").contains("SEKRET"), "{text}");
        insta::assert_snapshot!(name.replace('/', "_"), text);
    }
    let source = fixture.source("bad/own.toml");
    let root = parse_toml(&source).expect("TOML").into_inner();
    let faults =
        read_own(&source, &root, &fixture.environment, Author::User).expect_err("faults").to_string();
    assert!(!faults.contains("SEKRET"), "{faults}");
    insta::assert_snapshot!("bad_own_configuration", faults.replace(fixture.home_path(), HOME));
}
