//! The files that the command line names, and who can use the servers in them.

use std::path::PathBuf;

use lockhouse_base::path_trust::TrustedOwners;
use lockhouse_upstream::{DirectExposure, Exposure};
use nix::unistd::Uid;

use super::{file_permissions, search_paths};

/// Configuration, policy and servers files named on the command line.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Files {
    /// Configuration file [default: ~/.config/lockhouse/config.toml, then /etc/lockhouse/config.toml]
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Policy file [default: policy.toml in the same directories]
    #[arg(long, value_name = "FILE", global = true)]
    pub policy: Option<PathBuf>,
    /// An AI client's configuration file to read servers from; may be given several times, and the first server of a name wins
    #[arg(long, value_name = "FILE", global = true)]
    pub servers: Vec<PathBuf>,
    /// A further account that may own these files, for a process of root [default: only root]
    #[arg(long, value_name = "USER", global = true, value_parser = file_permissions::trusted_account)]
    pub trust_owner: Option<u32>,
    /// Who can use the servers whose configuration tables do not set this. Set by `lockhouse serve --expose`.
    #[arg(skip)]
    pub expose: ExposeMode,
    /// The user id of the person whose engine of the system uses the files. Set by `lockhouse engine --person`.
    #[arg(skip)]
    pub person: Option<u32>,
}

impl Files {
    /// Returns the accounts that may own the files, and what is on the way to them.
    pub(super) fn owners(&self) -> TrustedOwners {
        let owners = TrustedOwners::root_and_own();
        self.trust_owner.map(Uid::from_raw).into_iter().fold(owners, TrustedOwners::with)
    }

    /// Whether no file is named, and the configuration in use is that of the service of this host.
    pub fn is_of_service(&self) -> bool {
        let is_named = self.config.is_some() || self.policy.is_some() || !self.servers.is_empty();
        !is_named && search_paths::is_of_system(config_path(self).as_deref())
    }

    /// Returns the options of the command line that name these files, each with its value.
    pub fn options(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        let named = self.config.iter().map(|path| ("--config", path.clone()));
        let named = named.chain(self.policy.iter().map(|path| ("--policy", path.clone())));
        let named = named.chain(self.servers.iter().map(|path| ("--servers", path.clone())));
        named.chain(self.trust_owner.map(|account| ("--trust-owner", account.to_string().into())))
    }

    /// Returns the same files with absolute paths, for a process in another directory.
    pub fn absolute(&self) -> std::io::Result<Self> {
        let absolute = |path: &PathBuf| std::path::absolute(path);
        Ok(Self {
            config: self.config.as_ref().map(absolute).transpose()?,
            policy: self.policy.as_ref().map(absolute).transpose()?,
            servers: self.servers.iter().map(absolute).collect::<Result<_, _>>()?,
            ..self.clone()
        })
    }
}

/// Returns the path of the configuration file in use, if one exists.
pub fn config_path(files: &Files) -> Option<PathBuf> {
    search_paths::config_file(files.config.as_deref(), "config.toml")
}

/// Who can use an upstream server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ExposeMode {
    /// Programs that run_code runs
    #[default]
    Code,
    /// The AI client, as tools of its own
    Direct,
    /// Both
    Both,
}

impl ExposeMode {
    /// Returns the name of the mode on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Direct => "direct",
            Self::Both => "both",
        }
    }

    pub(super) fn exposure(self) -> Exposure {
        let direct = (self != Self::Code).then(DirectExposure::default);
        Exposure { to_code: self != Self::Direct, direct }
    }
}
