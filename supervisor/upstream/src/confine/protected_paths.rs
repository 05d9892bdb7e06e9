//! Places with credentials, keys and the settings of other programs, and those of Lockhouse's own files. The profile
//! `default` grants no directory that is in such a place or contains one, even if a server's configuration names it.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lockhouse_base::directories;
use lockhouse_base::own_places::OwnPlaces;

/// The places, relative to the home directory.
const BELOW_HOME: [&str; 69] = [
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
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".profile",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    ".config/environment.d",
    ".config/fish",
    ".config/systemd",
    ".config/autostart",
    ".local/bin",
    // Other installations of Lockhouse; the places of this one are added.
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
    /// Places that no server may read.
    secret: Places,
    /// Places that no server may change: the former, and Lockhouse's own code.
    fixed: Places,
}

/// Paths of files and directories, with the directories above them.
#[derive(Default)]
struct Places {
    paths: Vec<PathBuf>,
    /// Device and inode of each directory above a place: it may be mounted elsewhere too.
    above: HashSet<(u64, u64)>,
}

impl ProtectedPaths {
    /// Finds the places. `home` is the home directory, without symbolic links; `own` are the places of Lockhouse's own
    /// files.
    pub(super) fn new(home: Option<&Path>, own: &OwnPlaces) -> Self {
        let mut secret = Places::default();
        for below in BELOW_HOME {
            home.iter().for_each(|home| secret.add(&home.join(below)));
            for (variable, replaced) in VARIABLES {
                let rest = Path::new(below).strip_prefix(replaced).ok();
                let base = std::env::var_os(variable).map(PathBuf::from).filter(|base| base.is_absolute());
                base.zip(rest).iter().for_each(|(base, rest)| secret.add(&base.join(rest)));
            }
        }
        let directories = [
            directories::configuration(),
            directories::state(),
            directories::cache(),
            directories::logs(),
            Some("/etc/lockhouse".into()),
            Some("/var/lib/lockhouse".into()),
            // Sockets of the user's services.
            Some("/run/user".into()),
        ];
        let own_files = own.files.iter().chain(&own.folders);
        directories.iter().flatten().chain(own_files).for_each(|path| secret.add(path));
        let mut fixed = Places { paths: secret.paths.clone(), above: secret.above.clone() };
        own.code.iter().for_each(|path| fixed.add(path));
        Self { secret, fixed }
    }

    /// Returns where a path without symbolic links is, for a server that reads it.
    pub(super) fn place(&self, path: &Path) -> Place {
        self.secret.place(path)
    }

    /// Returns where a path without symbolic links is, for a server that changes it.
    pub(super) fn place_to_change(&self, path: &Path) -> Place {
        self.fixed.place(path)
    }
}

impl Places {
    fn add(&mut self, path: &Path) {
        for path in [Some(path.to_owned()), std::fs::canonicalize(path).ok()].into_iter().flatten() {
            self.above.extend(path.ancestors().skip(1).filter_map(identity));
            self.paths.push(path);
        }
    }

    fn place(&self, path: &Path) -> Place {
        if self.paths.iter().any(|place| path.starts_with(place)) {
            Place::Inside
        } else if path == Path::new("/")
            || self.paths.iter().any(|place| place.starts_with(path))
            || identity(path).is_some_and(|identity| self.above.contains(&identity))
        {
            Place::Above
        } else {
            Place::Elsewhere
        }
    }
}

/// Returns the device and inode of a file or directory that exists.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}
