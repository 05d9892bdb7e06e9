//! Reads single tables of the configuration file, for commands that need nothing else of it. The servers files (AI clients'
//! files that list MCP servers) are not read, so faults of these files do not matter.

use std::path::{Path, PathBuf};

use lockhouse_access::{AuthSettings, CodeClient, TokenFile};
use lockhouse_audit::AuditSettings;
use lockhouse_audit_forward::{ForwardSettings, SegmentAccounts};
use lockhouse_base::http_checks::host_check::HostName;
use lockhouse_base::telemetry::log;
use lockhouse_front::http::ListenAddress;
use lockhouse_policies::Rate;
use lockhouse_stores::result_files::ResultFileLimits;
use lockhouse_stores::results;
use lockhouse_stores::skills::SkillSettings;

use super::config_toml::{ConfigToml, load_document};
use super::dialects::secret_template;
use super::error::ConfigError;
use super::files::Files;
use super::placeholders::Environment;
use super::requirements::Requirements;
use super::{client_access, engine_settings, forwarding, tables};

/// Loads the configuration file, with the keys that the administrator requires in place of the user's.
fn load_required(files: &Files, environment: &Environment) -> Result<(ConfigToml, PathBuf), ConfigError> {
    let (document, path) = load_document(files, environment)?;
    let requirements = Requirements::load(environment)?;
    Ok((requirements.lay_over(&document, environment)?, path))
}

/// Reads the log format from the configuration file. Returns the default if the file cannot be read; that error is
/// reported later.
pub fn log_format(files: &Files) -> log::Format {
    let document = load_required(files, &Environment::from_process());
    document.map(|(document, _)| document.log.format).unwrap_or_default()
}

/// Reads the audit log settings from the configuration file. Does not read the servers files (AI clients' files that
/// list MCP servers), so faults of these files do not matter.
///
/// # Errors
/// [`ConfigError`], with every fault of the configuration file.
pub fn load_audit_settings(files: &Files) -> Result<AuditSettings, ConfigError> {
    engine_settings::audit_settings(&load_required(files, &Environment::from_process())?.0.audit)
}

/// Reads the audit log settings like [`load_audit_settings`], for a command that may create the configuration file: if the
/// file does not exist yet, the settings are the defaults.
///
/// # Errors
/// [`ConfigError`], with every fault of the configuration file.
pub fn load_audit_settings_for_edit(files: &Files) -> Result<AuditSettings, ConfigError> {
    if files.config.as_ref().is_some_and(|named| !named.exists()) {
        return engine_settings::audit_settings(&ConfigToml::default().audit);
    }
    load_audit_settings(files)
}

/// Reads from the configuration file where the audit log is forwarded to. Does not read the servers files (AI clients'
/// files that list MCP servers).
///
/// # Errors
/// [`ConfigError`], with every fault of the configuration file.
pub fn load_forward_settings(files: &Files) -> Result<ForwardSettings, ConfigError> {
    let (document, path) = load_required(files, &Environment::from_process())?;
    forwarding::forward_settings(&document.audit, &path)
}

/// Reads from the configuration file and the administrator's requirements how the audit sink keeps and forwards its log, which
/// is in the directory `log`, with its keys in the directory `keys`.
///
/// # Errors
/// [`ConfigError`], with every fault of the configuration file.
pub fn load_sink_settings(
    files: &Files,
    log: PathBuf,
    keys: PathBuf,
) -> Result<(AuditSettings, ForwardSettings), ConfigError> {
    let environment = Environment { owners: files.owners(), ..Environment::from_process() };
    let (mut document, path) = load_required(files, &environment)?;
    // The sink itself writes the log.
    (document.audit.sink, document.audit.directory) = (None, Some(log));
    let audit = AuditSettings { keys: keys.clone(), ..engine_settings::audit_settings(&document.audit)? };
    let forward = forwarding::forward_settings(&document.audit, &path)?;
    let forward = forwarding::with_credentials(forward, &document.audit, &environment)?;
    Ok((audit, ForwardSettings { state: keys, accounts: SegmentAccounts::FirstRecord, ..forward }))
}

/// The settings of a service's live page: the table `[page]`, and how people authenticate.
pub struct PageSettings {
    pub listen: Option<ListenAddress>,
    pub hosts: Vec<HostName>,
    pub administrators: Vec<String>,
    pub auth: AuthSettings,
    /// Rate limit of the logins of one client.
    pub logins: Rate,
    /// The page as a client of the issuer of tokens; `None` if people enter tokens.
    pub client: Option<CodeClient>,
}

/// Reads the settings of a service's live page from the configuration file. Resolves no secret of upstream servers.
///
/// # Errors
/// [`ConfigError`], with every fault of the configuration file.
pub fn load_page_settings(files: &Files) -> Result<PageSettings, ConfigError> {
    let environment = Environment { owners: files.owners(), ..Environment::from_process() };
    let (document, path) = load_required(files, &environment)?;
    let auth = client_access::access_settings(&document, &path, &environment)?;
    let logins = client_access::client_limits(&document.clients).requests;
    let client = page_client(&document, &path, &environment)?;
    let tables::Page { listen, hosts, administrators, .. } = document.page;
    Ok(PageSettings { listen, hosts, administrators, auth, logins, client })
}

/// Reads the limits for stored results, and the maximum size in bytes of the part of a result that an answer shows.
/// Does not read the servers files (AI clients' files that list MCP servers).
///
/// # Errors
/// [`ConfigError`], with every fault of the configuration file.
pub fn load_result_bounds(files: &Files) -> Result<ResultBounds, ConfigError> {
    let (document, _) = load_required(files, &Environment::from_process())?;
    Ok(ResultBounds {
        results: engine_settings::result_bounds(&document.results),
        files: engine_settings::result_file_bounds(&document.results),
        part_bytes: engine_settings::display_limits(&document.limits).part_bytes,
    })
}

/// The limits of stored results and files.
#[derive(Clone, Copy, Debug)]
pub struct ResultBounds {
    pub results: results::ResultLimits,
    pub files: ResultFileLimits,
    /// Maximum size in bytes of the part of a result that an answer shows.
    pub part_bytes: usize,
}

/// Reads the skill settings from the configuration file. Does not read the servers files (AI clients' files that list
/// MCP servers).
///
/// # Errors
/// [`ConfigError`], with every fault of the configuration file.
pub fn load_skill_settings(files: &Files) -> Result<SkillSettings, ConfigError> {
    let environment = Environment::from_process();
    let (document, path) = load_required(files, &environment)?;
    Ok(engine_settings::skill_settings(&document.skills, &path, &environment))
}

/// Reads from the configuration file where the tokens of AI clients are stored. Does not read the servers files (AI
/// clients' files that list MCP servers).
///
/// # Errors
/// [`ConfigError`], with every fault of the configuration file.
pub fn load_token_file(files: &Files) -> Result<TokenFile, ConfigError> {
    let environment = Environment::from_process();
    let (document, path) = load_required(files, &environment)?;
    client_access::token_file(&document.http, &path, &environment).ok_or(ConfigError::NoStateDirectory)
}

/// Returns the page as a client of the issuer of tokens. `None` if the configuration names no client.
fn page_client(
    document: &ConfigToml,
    path: &Path,
    environment: &Environment,
) -> Result<Option<CodeClient>, ConfigError> {
    let fault = |reason: String| ConfigError::Unusable { path: path.to_owned(), reason };
    let page = &document.page;
    let Some(client_id) = page.client_id.clone() else { return Ok(None) };
    let Some(oauth) = &document.http.oauth else {
        return Err(fault("client_id of [page] needs [http.oauth], whose issuer logs people in".to_owned()));
    };
    let secret = |text: &String| {
        let template = secret_template(text, environment);
        let expected = "client_secret of [page]: expected a placeholder, such as \"${cred:NAME}\"";
        let template = template.ok_or_else(|| fault(expected.to_owned()))?;
        template.resolve(environment).map_err(|error| fault(format!("client_secret of [page]: {error}")))
    };
    let client_secret = page.client_secret.as_ref().map(secret).transpose()?;
    let scopes = match page.scopes.is_empty() {
        true => oauth.scopes.keys().cloned().collect(),
        false => page.scopes.clone(),
    };
    Ok(Some(CodeClient { client_id, client_secret, scopes }))
}
