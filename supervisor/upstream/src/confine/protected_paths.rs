//! Places with credentials, keys and the settings of other programs. The profile `default` grants no directory that is
//! in such a place or contains one, even if a server's configuration names it.

use std::path::{Path, PathBuf};

use lockhouse_base::directories;

/// The places, relative to the home directory.
const BELOW_HOME: [&str; 60] = [
    // Keys, passwords and keyrings.
    ".ssh",
    ".gnupg",
    ".pki",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/op",
    ".config/Bitwarden CLI",
    ".config/sops",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    // Clouds, clusters and package registries.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/rclone",
    ".oci",
    ".kube",
    ".docker",
    ".terraform.d",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    // Browsers and mail.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    // AI clients and editors.
    ".claude",
    ".claude.json",
    ".config/Claude",
    ".cline",
    ".codeium",
    ".codex",
    ".continue",
    ".copilot",
    ".cursor",
    ".gemini",
    ".qwen",
    ".config/opencode",
    ".local/share/opencode",
    ".config/Code",
    ".vscode",
    ".config/zed",
    // What a shell or a login runs, and records.
    ".bashrc",
    ".bash_history",
    ".profile",
    ".zshrc",
    ".config/systemd",
    ".config/autostart",
    ".local/bin",
    // Other installations of Lockhouse; this one's directories are added.
    ".config/lockhouse",
];

/// The variables that replace a directory below the home directory.
const VARIABLES: [(&str, &str); 3] =
    [("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share"), ("XDG_STATE_HOME", ".local/state")];

/// Where a path is, compared to the protected places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a protected place, or the place itself.
    Inside,
    /// A directory that contains a protected place, such as the home directory.
    Above,
    Elsewhere,
}

/// The protected places of this user.
pub(super) struct ProtectedPaths {
    places: Vec<PathBuf>,
}

impl ProtectedPaths {
    /// Finds the places. `home` is the home directory, without symbolic links.
    pub(super) fn new(home: Option<&Path>) -> Self {
        let mut places = Vec::new();
        for below in BELOW_HOME {
            places.extend(home.map(|home| home.join(below)));
            for (variable, replaced) in VARIABLES {
                let rest = Path::new(below).strip_prefix(replaced).ok();
                let base = std::env::var_os(variable).map(PathBuf::from).filter(|base| base.is_absolute());
                places.extend(base.zip(rest).map(|(base, rest)| base.join(rest)));
            }
        }
        let own = [
            directories::configuration(),
            directories::state(),
            directories::cache(),
            directories::logs(),
            Some("/etc/lockhouse".into()),
            Some("/var/lib/lockhouse".into()),
            // Sockets of the user's services.
            Some("/run/user".into()),
        ];
        places.extend(own.into_iter().flatten());
        let resolved: Vec<PathBuf> =
            places.iter().filter_map(|path| std::fs::canonicalize(path).ok()).collect();
        places.extend(resolved);
        Self { places }
    }

    /// Returns where a path without symbolic links is.
    pub(super) fn place(&self, path: &Path) -> Place {
        if self.places.iter().any(|place| path.starts_with(place)) {
            Place::Inside
        } else if path == Path::new("/") || self.places.iter().any(|place| place.starts_with(path)) {
            Place::Above
        } else {
            Place::Elsewhere
        }
    }
}
