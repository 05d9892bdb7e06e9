//! Checks that only trusted accounts can change the code that runs before the sandbox of a worker is entered.

use lockhouse_base::directories;
use lockhouse_base::path_trust::TrustedOwners;

use super::config_toml::ConfigToml;
use super::error::ConfigError;
use super::file_permissions::refuse_untrusted;
use super::{interpreter_places, python_environment, search_paths};

/// Rejects directories of Lockhouse, and programs, libraries and modules of the language engines, that accounts other than
/// `owners` can change.
///
/// # Errors
/// [`ConfigError::Unusable`], as for a configuration file.
pub(super) fn refuse_untrusted_code(
    document: &ConfigToml,
    owners: &TrustedOwners,
) -> Result<(), ConfigError> {
    let ConfigToml { python, javascript, .. } = document;
    let own = [directories::state(), directories::cache()].into_iter().flatten();
    let code = [&python.environment, &python.interpreter, &python.extension, &javascript.worker];
    let modules =
        python_environment::code_folders(python.environment.as_deref(), python.interpreter.as_deref());
    let interpreter = search_paths::python_interpreter(python.interpreter.as_deref()).ok();
    let startup = interpreter.iter().flat_map(|path| interpreter_places::startup_code(path));
    let mut all = own.chain(code.into_iter().flatten().cloned()).chain(modules).chain(startup);
    all.try_for_each(|path| refuse_untrusted(&path, owners))
}
