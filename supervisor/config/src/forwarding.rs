//! Where the audit log is forwarded to, with the secrets by which this machine identifies itself to the destinations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lockhouse_audit::AuditSettings;
use lockhouse_audit_forward::{
    Credentials, DestinationEntry, ForwardDestination, ForwardSettings, SegmentAccounts,
};

use super::dialects::{PLACEHOLDER_FORMS, secret_template};
use super::engine_settings;
use super::error::ConfigError;
use super::placeholders::{Environment, placeholder_files};
use super::tables::Audit;

/// Returns the settings of forwarding the audit log, without secrets. A relative path of `forward_ca` is relative to the
/// configuration file.
pub(super) fn forward_settings(
    document: &Audit,
    configuration: &Path,
) -> Result<ForwardSettings, ConfigError> {
    let AuditSettings { directory, keys, .. } = engine_settings::audit_settings(document)?;
    let beside = configuration.parent().unwrap_or(Path::new(""));
    let without_secrets = |entry: &DestinationEntry| ForwardDestination {
        destination: entry.destination.clone(),
        credentials: Credentials::default(),
    };
    Ok(ForwardSettings {
        destinations: document.forward.iter().map(without_secrets).collect(),
        format: document.forward_format,
        ca: document.forward_ca.as_ref().map(|path| beside.join(path)),
        log: directory,
        state: keys,
        accounts: SegmentAccounts::Owner,
    })
}

/// Adds to the settings the credentials that the configuration has, of a process that forwards the log itself.
///
/// # Errors
/// [`ConfigError::ForwardHeader`] for the first header without a valid value.
pub(super) fn with_credentials(
    settings: ForwardSettings,
    document: &Audit,
    environment: &Environment,
) -> Result<ForwardSettings, ConfigError> {
    let resolved = |entry: &DestinationEntry| {
        let (destination, credentials) = (entry.destination.clone(), credentials(entry, environment)?);
        Ok(ForwardDestination { destination, credentials })
    };
    let destinations: Result<_, ConfigError> = document.forward.iter().map(resolved).collect();
    Ok(ForwardSettings { destinations: destinations?, ..settings })
}

fn credentials(entry: &DestinationEntry, environment: &Environment) -> Result<Credentials, ConfigError> {
    let fault = |header: &str, reason: String| ConfigError::ForwardHeader {
        destination: entry.destination.to_string(),
        header: header.to_owned(),
        reason,
    };
    let mut headers = BTreeMap::new();
    for (name, text) in &entry.headers {
        let template = secret_template(text, environment).ok_or_else(|| {
            fault(name, format!("its value must have one of the placeholders {PLACEHOLDER_FORMS}"))
        })?;
        if placeholder_files(text).any(|path| !path.starts_with('/')) {
            return Err(fault(name, "the path of a file must be absolute".to_owned()));
        }
        let value = template.resolve(environment).map_err(|error| fault(name, error.to_string()))?;
        headers.insert(name.clone(), value);
    }
    Credentials::new(&headers, entry.identity.clone()).map_err(|error| fault(&error.name, error.to_string()))
}

/// Returns the files that the entries name: certificates, keys, and those with the values of headers.
pub(super) fn named_files(document: &Audit) -> impl Iterator<Item = PathBuf> {
    document.forward.iter().flat_map(|entry| {
        let identity = entry.identity.iter().flat_map(|identity| [&identity.certificate, &identity.key]);
        let values = entry.headers.values().flat_map(|text| placeholder_files(text)).map(PathBuf::from);
        identity.cloned().chain(values)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(header: &str) -> Result<String, String> {
        let toml = format!(
            "forward = [{{ to = \"otlp+https://c.example.com\", headers = {{ Authorization = {header} }} }}]"
        );
        let document: Audit = toml::from_str(&toml).map_err(|error| error.to_string())?;
        let variables = [("TOKEN".to_owned(), "SEKRET".to_owned())].into();
        let environment = Environment { variables, ..Environment::default() };
        let settings = ForwardSettings {
            destinations: Vec::new(),
            format: document.forward_format,
            ca: None,
            log: PathBuf::new(),
            state: PathBuf::new(),
            accounts: SegmentAccounts::Owner,
        };
        let settings = with_credentials(settings, &document, &environment);
        settings.map(|settings| format!("{settings:?}")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_value_of_a_header_is_a_placeholder_and_is_shown_nowhere() {
        let settings = resolved("'Bearer ${env:TOKEN}'").expect("valid");
        assert!(settings.contains("authorization") && !settings.contains("SEKRET"), "{settings}");
        for (header, words) in [
            ("'SEKRET'", "must have one of the placeholders"),
            ("'SEKRET ${env:TOKEN'", "must have one of the placeholders"),
            ("'SEKRET ${file:token}'", "must be absolute"),
            ("'SEKRET ${env:ABSENT}'", "the environment variable ABSENT is not set"),
            ("\"${env:TOKEN}\\n\"", "a character that no header may have"),
        ] {
            let error = resolved(header).expect_err(header);
            assert!(error.contains(words) && !error.contains("SEKRET"), "{header}: {error}");
        }
    }

    #[test]
    fn the_files_of_an_entry_are_known() {
        let toml = "forward = [\"journald\", { to = \"otlp+https://c.example.com\", certificate = \"/c.pem\", \
                    key = \"/k.pem\", headers = { A = \"x ${file:/token}\" } }]";
        let document: Audit = toml::from_str(toml).expect("valid");
        let files: Vec<PathBuf> = named_files(&document).collect();
        assert_eq!(files, ["/c.pem", "/k.pem", "/token"].map(PathBuf::from));
    }
}
