//! Lists the places of Lockhouse's own files that are in force: those that the command line, the configuration and the
//! environment name, and the directories that are used without being named.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lockhouse_base::directories;
use lockhouse_base::own_places::OwnPlaces;
use lockhouse_engine::control_socket::socket_path::candidate_directories;
use lockhouse_front::http::ListenAddress;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::ServerDefinition;

use super::config_toml::ConfigToml;
use super::error::ConfigError;
use super::interpreter_places::interpreter_places;
use super::placeholders::Environment;
use super::requirements::Requirements;
use super::server_programs::server_programs;
use super::{Files, client_access, engine_settings, forwarding, policy_files, python_environment};
use super::{search_paths, secrets_directory};

/// Directories that Lockhouse uses on every machine.
const SYSTEM: [&str; 2] = ["/etc/lockhouse", "/var/lib/lockhouse"];

/// Returns the places. `path` is the configuration file. The definitions of all servers must have been resolved with
/// `environment`, which remembers the files that they name.
pub(super) fn own_places(
    files: &Files,
    document: &ConfigToml,
    path: &Path,
    environment: &Environment,
    servers: &BTreeMap<ServerName, ServerDefinition>,
    requirements: &Requirements,
) -> Result<OwnPlaces, ConfigError> {
    let mut places = OwnPlaces::default();
    places.files.extend(absolute(named_files(files, document, path, environment)));
    places.files.extend(absolute(requirements.named_files()));
    places.folders.extend(absolute(folders(document, path, environment)?));
    let environment = python_environment::environment_in_use(document.python.environment.as_deref());
    let managed = python_environment::managed_directory();
    let caches = directories::state().map(|state| state.join("servers"));
    places.code.extend(absolute(environment.into_iter().chain(managed).chain(caches)));
    places.code.extend(absolute(programs(document)));
    places.server_programs.extend(absolute(servers.values().flat_map(server_programs)));
    Ok(places)
}

fn absolute(paths: impl IntoIterator<Item = PathBuf>) -> BTreeSet<PathBuf> {
    let is_named = |path: &PathBuf| !path.as_os_str().is_empty();
    paths.into_iter().filter(is_named).filter_map(|path| std::path::absolute(path).ok()).collect()
}

/// Returns the files that say what Lockhouse does, those with secrets, and the sockets.
fn named_files(files: &Files, document: &ConfigToml, path: &Path, environment: &Environment) -> Vec<PathBuf> {
    let beside =
        |written: &str| path.parent().unwrap_or(Path::new("")).join(environment.expand_home(written));
    let mut named = vec![path.to_owned()];
    named.extend(files.policy.iter().cloned().chain(policy_files::find_policy(files)));
    named.extend(files.servers.iter().cloned());
    named.extend(document.servers_files.iter().map(|written| beside(written)));
    // Also those of servers that are switched off, which are not resolved.
    named.extend(document.referenced_files.iter().map(|written| beside(written)));
    named.extend(environment.used().files);
    let http = &document.http;
    let tokens = client_access::token_file(http, path, environment);
    named.extend(tokens.iter().flat_map(|tokens| [tokens.path().to_owned(), tokens.lock_path()]));
    let tls = http.tls.iter().flat_map(|tls| [&tls.certificate, &tls.key]);
    let keys = http.oauth.iter().filter_map(|oauth| oauth.jwks.as_ref());
    named.extend(tls.chain(keys.filter(|keys| !keys.contains("://"))).map(|written| beside(written)));
    named.extend(document.audit.forward_ca.iter().map(|written| beside(&written.to_string_lossy())));
    named.extend(forwarding::named_files(&document.audit));
    named.extend(document.audit.sink.iter().map(|sink| sink.path().to_owned()));
    let addresses = http.listen.iter().flatten().chain(&document.metrics.listen).chain(&document.page.listen);
    named.extend(addresses.filter_map(|address| match address {
        ListenAddress::Unix(path) => Some(path.clone()),
        ListenAddress::Tcp(_) => None,
    }));
    named
}

/// Returns the programs and libraries that Lockhouse consists of. Of those that it looks for in several places, returns
/// all places: a file in an earlier one would be used from the next start on.
fn programs(document: &ConfigToml) -> impl Iterator<Item = PathBuf> {
    let interpreter = search_paths::python_interpreter(document.python.interpreter.as_deref()).ok();
    let extension = document.python.extension.as_deref();
    let extensions = search_paths::installed_candidates(extension, "liblockhouse_python.so");
    let worker = document.javascript.worker.as_deref();
    let workers = search_paths::installed_candidates(worker, "lockhouse-worker");
    let environment = interpreter.as_deref().and_then(python_environment::virtual_environment);
    let python: Vec<PathBuf> = interpreter.iter().flat_map(|path| interpreter_places(path)).collect();
    let single = [std::env::current_exe().ok(), environment].into_iter().flatten();
    single.chain(python).chain(extensions).chain(workers)
}

/// Returns the directories of configuration, state, caches, logs, audit log, skills, sockets and credentials.
fn folders(
    document: &ConfigToml,
    path: &Path,
    environment: &Environment,
) -> Result<Vec<PathBuf>, ConfigError> {
    let own = [directories::configuration(), directories::state(), directories::cache(), directories::logs()];
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    let skills = engine_settings::skill_settings(&document.skills, path, environment);
    let audit = engine_settings::audit_settings(&document.audit)?;
    let mut folders: Vec<PathBuf> = SYSTEM.map(PathBuf::from).into();
    folders.extend(own.into_iter().chain([secrets_directory(), credentials, skills.own]).flatten());
    folders.extend(skills.shared);
    folders.extend([audit.directory, audit.keys]);
    folders.extend(candidate_directories());
    Ok(folders)
}
