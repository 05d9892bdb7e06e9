//! Paths that the profile `default` lets every server read: programs outside `/usr`, and the language runtimes and
//! installed programs of the user.

use std::io;
use std::path::{Path, PathBuf};

use lockhouse_base::files::read_following_links;

use super::ConfineError;

/// Directories with programs, and settings of programs without secrets.
const OF_SYSTEM: [&str; 9] = [
    "/opt",
    "/snap",
    "/home/linuxbrew/.linuxbrew",
    "/run/current-system/sw",
    "/etc/profiles/per-user",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/gitconfig",
    "/etc/debian_version",
];

/// Directories of language runtimes and installed programs, and settings of these without secrets, relative to the
/// home directory.
const BELOW_HOME: [&str; 45] = [
    ".local/bin",
    ".local/lib",
    // Node.js, Deno and Bun.
    ".nvm/versions",
    ".nvm/alias",
    ".fnm",
    ".local/share/fnm",
    ".volta/bin",
    ".volta/tools",
    ".n",
    ".npm-global",
    ".npm-packages",
    ".node_modules",
    ".local/share/pnpm",
    ".config/yarn/global",
    ".deno/bin",
    ".bun/bin",
    ".bun/install/global",
    // Python.
    ".pyenv",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".local/pipx",
    ".local/share/pipx",
    ".rye",
    ".conda/envs",
    "miniconda3",
    "anaconda3",
    "miniforge3",
    "mambaforge",
    // Other languages, and managers of several.
    ".asdf",
    ".local/share/mise",
    ".cargo/bin",
    "go/bin",
    ".rbenv",
    ".sdkman/candidates",
    ".dotnet",
    ".jbang",
    ".tool-versions",
    ".nvmrc",
    ".node-version",
    ".python-version",
    ".asdfrc",
    // git fails if it cannot read these.
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
];

/// Programs that install and run packages, and their settings, relative to the home directory. The settings choose the
/// registry of packages. Without them, the program may install a package of the same name from another registry, so a
/// server that cannot have them is not started.
const RUNNER_SETTINGS: [(&[&str], &str); 4] = [
    (&["npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx"], ".npmrc"),
    (&["uv", "uvx"], ".config/uv/uv.toml"),
    (&["pipx", "pip"], ".config/pip/pip.conf"),
    (&["bun", "bunx"], ".bunfig.toml"),
];
/// The maximum size in bytes of a settings file that is searched for credentials.
const SETTINGS_BYTES_MAX: u64 = 256 * 1024;
/// Texts that indicate credentials in a settings file, in lower case.
const CREDENTIAL_SIGNS: [&str; 5] = ["_auth", "password", "token", "secret", "@"];

/// Returns those of the paths that exist.
pub(super) fn existing(home: Option<&Path>) -> Vec<PathBuf> {
    let of_home = home.into_iter().flat_map(|home| BELOW_HOME.iter().map(|below| home.join(below)));
    let of_system = OF_SYSTEM.iter().map(PathBuf::from);
    of_system.chain(of_home).filter(|path| path.exists()).collect()
}

/// Returns the settings files of a program that installs packages. A file in `granted` is left out, since the
/// configuration grants it.
///
/// # Errors
///
/// Returns an error if a file may contain credentials, or cannot be read.
pub(super) fn runner_settings(
    program: &str,
    home: Option<&Path>,
    granted: &[PathBuf],
) -> Result<Vec<PathBuf>, ConfineError> {
    let name = Path::new(program).file_name().unwrap_or_default();
    let mut settings = Vec::new();
    for (programs, below) in RUNNER_SETTINGS {
        let Some(path) = home.map(|home| home.join(below)) else { continue };
        let is_used = programs.iter().any(|program| name == *program) && path.exists();
        if !is_used || granted.iter().any(|granted| path.starts_with(granted)) {
            continue;
        }
        if !is_free_of_credentials(&path).unwrap_or(false) {
            return Err(ConfineError::Credentials { program: program.to_owned(), path });
        }
        settings.push(path);
    }
    Ok(settings)
}

/// Whether no line of a settings file looks like a credential. Comments are ignored. An `@` is also the beginning of
/// the name of a scope of packages, such as in `@acme:registry=https://npm.example.com`.
fn is_free_of_credentials(path: &Path) -> io::Result<bool> {
    let text = read_following_links(path, SETTINGS_BYTES_MAX)?.unwrap_or_default().to_lowercase();
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let mut lines = lines.map(|line| line.strip_prefix('@').unwrap_or(line));
    Ok(!lines.any(|line| CREDENTIAL_SIGNS.iter().any(|sign| line.contains(sign))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_runner_are_granted_only_without_credentials() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join(".npmrc");
        for (text, expected) in [
            ("registry=https://npm.example.com/\n@acme:registry=https://a.example.com/\n", true),
            ("; token of ada\nfund=false\n", true),
            ("//npm.example.com/:_authToken=abc\n", false),
            ("registry=https://ada:pass@npm.example.com/\n", false),
        ] {
            std::fs::write(&file, text).expect("a file");
            let found = runner_settings("/usr/bin/npx", Some(home.path()), &[]);
            assert_eq!(found.ok() == Some(vec![file.clone()]), expected, "{text}");
            let listed = runner_settings("npx", Some(home.path()), std::slice::from_ref(&file));
            assert!(listed.is_ok_and(|left| left.is_empty()), "{text}");
        }
        let others = runner_settings("node", Some(home.path()), &[]);
        assert!(others.is_ok_and(|left| left.is_empty()));
    }
}
