//! Settings of uv that would build packages from source, which runs their code. uv lets such a setting for one package
//! override the order to use built distributions (wheels) only.

use std::path::{Path, PathBuf};

use lockhouse_base::files;
use toml::Table;

/// Environment variables of uv that choose packages to build. The installer does not get them.
pub(super) const SOURCE_VARIABLES: [&str; 2] = ["UV_NO_BINARY", "UV_NO_BINARY_PACKAGE"];
/// The beginning of the names of the settings that choose packages to build.
const SOURCE_SETTING: &str = "no-binary";
const SETTINGS_BYTES_MAX: u64 = 1024 * 1024;

/// Returns the first settings file of the user or the system that has packages built from source, with the setting.
pub(super) fn source_setting() -> Option<(PathBuf, String)> {
    settings_files().into_iter().find_map(|path| Some((path.clone(), source_setting_in(&path)?)))
}

fn source_setting_in(path: &Path) -> Option<String> {
    let text = files::read_following_links(path, SETTINGS_BYTES_MAX).ok()??;
    let settings: Table = text.parse().ok()?;
    let of_pip = settings.get("pip").and_then(|pip| pip.as_table());
    let mut names = settings.keys().chain(of_pip.into_iter().flat_map(Table::keys));
    names.find(|name| name.starts_with(SOURCE_SETTING)).cloned()
}

/// Returns the paths at which uv looks for the settings of the user and the system.
fn settings_files() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(named) = variable("UV_CONFIG_FILE") {
        return vec![PathBuf::from(named)];
    }
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".config"));
    let of_user = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    let of_system = variable("XDG_CONFIG_DIRS").unwrap_or_else(|| "/etc/xdg".into());
    let directories = of_user.into_iter().chain(std::env::split_paths(&of_system)).chain(["/etc".into()]);
    directories.map(|directory| directory.join("uv/uv.toml")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_build_packages_are_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("uv.toml");
        for (text, expected) in [
            ("index-url = 'https://mirror.test'\n", None),
            ("no-binary-package = ['six']\n", Some("no-binary-package")),
            ("[pip]\nno-binary = [':all:']\n", Some("no-binary")),
            ("[[index]]\nurl = 'https://mirror.test'\n[pip]\nno-build = true\n", None),
            ("not TOML", None),
        ] {
            std::fs::write(&path, text).expect("written");
            assert_eq!(source_setting_in(&path).as_deref(), expected, "{text}");
        }
        assert_eq!(source_setting_in(&directory.path().join("none")), None);
    }
}
