//! Files as each AI client writes them, and what is read of them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use lockhouse_policies::Source;
use lockhouse_upstream::{
    Authorization, HttpEndpoint, OAuthClient, Reach, ServerCommand, ServerDefinition, ServerLimits,
};

use super::tree::parse_toml;
use super::{Listed, read, read_own};
use crate::config::references::Surroundings;

/// Where the files say that their author is at home.
const HOME: &str = "/home/ada";

pub(super) fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/dialects")
}

struct World {
    home: tempfile::TempDir,
    surroundings: Surroundings,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        std::fs::write(home.path().join("key.txt"), "key from a file\n").expect("a file");
        std::fs::write(home.path().join("cursor.env"), "FROM_FILE=1\nTOKEN=overridden\n").expect("a file");
        let path = home.path().to_str().expect("UTF-8");
        let environment = [
            ("HOME", path),
            ("GITHUB_TOKEN", "value of GITHUB_TOKEN"),
            ("MODE", "mode"),
            ("LOCKHOUSE_INPUT_GIVEN", "given input"),
            ("CREDENTIALS_DIRECTORY", path),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let surroundings =
            Surroundings { environment, home: Some(path.into()), directory: "/srv/app".into() };
        Self { home, surroundings }
    }

    fn at_home(&self) -> &str {
        self.home.path().to_str().expect("UTF-8")
    }

    fn source(&self, name: &str) -> Source {
        let text = std::fs::read_to_string(files().join(name)).expect("a file").replace(HOME, self.at_home());
        Source { path: format!("{}/{name}", self.at_home()), text }
    }

    fn listed(&self, listed: &Listed, source: &Source) -> String {
        let origin = format!("{}:{}", source.path, listed.line);
        let definition = listed
            .entry
            .clone()
            .and_then(|entry| entry.resolve(&self.surroundings, ServerLimits::default(), origin));
        let told = match definition {
            Ok(definition) => told(&definition),
            Err(reason) => format!("left out: {reason}\n"),
        };
        format!("{} (line {})\n{}", listed.name, listed.line, indented(&told))
    }

    fn read(&self, name: &str) -> String {
        let source = self.source(name);
        let text = match read(&source, &self.surroundings) {
            Err(faults) => faults.to_string(),
            Ok(None) => "lists no servers".to_owned(),
            Ok(Some(listing)) => {
                let servers = listing.servers.iter().map(|listed| self.listed(listed, &source));
                format!("{:?}\n{}", listing.dialect, servers.collect::<String>())
            }
        };
        text.replace(self.at_home(), HOME)
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn told(definition: &ServerDefinition) -> String {
    let mut told = match &definition.reach {
        Reach::Stdio(command) => of_command(command),
        Reach::Http(endpoint) => of_endpoint(endpoint),
    };
    let ours = ServerLimits::default();
    if definition.limits != ours {
        writeln!(told, "{:?}", definition.limits).expect("text");
    }
    if definition.start != Default::default() {
        writeln!(told, "{:?}", definition.start).expect("text");
    }
    if definition.tools != Default::default() {
        writeln!(told, "{:?}", definition.tools).expect("text");
    }
    told
}

fn pairs(name: &str, pairs: &BTreeMap<String, String>) -> String {
    pairs.iter().map(|(key, value)| format!("{name} {key} = {value:?}\n")).collect()
}

fn of_command(command: &ServerCommand) -> String {
    let mut told = format!("runs {:?} {:?}\n", command.program, command.arguments);
    told += &pairs("env", &command.environment);
    if let Some(directory) = &command.directory {
        told += &format!("in {}\n", directory.display());
    }
    if let Some(confinement) = &command.confinement {
        told += &format!("{confinement:?}\n");
    }
    told
}

fn of_endpoint(endpoint: &HttpEndpoint) -> String {
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
        Authorization::OAuth(of) => format!("OAuth {}", client(of)),
        Authorization::ClientCredentials(of) => format!("client credentials {}", client(of)),
    };
    format!("at {}\n{}authorization {authorization}\n", endpoint.url, pairs("header", &endpoint.headers))
}

#[test]
fn every_client_s_file_is_read_as_its_client_reads_it() {
    let world = World::new();
    for name in [
        "claude_desktop.json",
        "claude_code.json",
        "cursor.json",
        "vscode.jsonc",
        "vscode_settings.jsonc",
        "codex.toml",
        "gemini.json",
        "windsurf.json",
        "zed.jsonc",
        "opencode.jsonc",
        "opencode_2.jsonc",
        "seed_coordinator.json",
        "seed_code_mode.json",
        "own.toml",
    ] {
        insta::assert_snapshot!(name, world.read(name));
    }
}

#[test]
fn what_cannot_be_read_is_told_with_its_line_and_without_values() {
    let world = World::new();
    let mut names: Vec<_> = std::fs::read_dir(files().join("bad")).expect("files").collect();
    names.sort_by_key(|entry| entry.as_ref().map(std::fs::DirEntry::file_name).unwrap_or_default());
    for entry in names {
        let name = format!("bad/{}", entry.expect("an entry").file_name().to_string_lossy());
        let told = world.read(&name);
        assert!(!told.replace("${SEKRET}", "").contains("SEKRET"), "{told}");
        insta::assert_snapshot!(name.replace('/', "_"), told);
    }
    let source = world.source("bad/own.toml");
    let root = parse_toml(&source).expect("TOML").into_inner();
    let faults = read_own(&source, &root, &world.surroundings).expect_err("faults").to_string();
    assert!(!faults.contains("SEKRET"), "{faults}");
    insta::assert_snapshot!("bad_own_configuration", faults.replace(world.at_home(), HOME));
}
