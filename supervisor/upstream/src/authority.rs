//! Whose rights the process of an upstream server has, and what restricts it on this host.

use super::confine::{KernelGap, kernel_gaps};
use super::definition::{ConfinementProfile, Endpoint, RunAs, ServerCommand};

/// Whose account the process of an upstream server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerClass {
    /// That of the process that starts it: the server is a child of the engine.
    Engine,
    /// That of the person whom the engine of the system serves: a launcher in the session of the person starts the server.
    User,
    /// One of its own: another service starts the server, and decides what it may do.
    Service,
}

impl ServerClass {
    /// Returns the class of a server; `None` for one over HTTP, whose process Lockhouse does not know.
    pub fn of(endpoint: &Endpoint) -> Option<Self> {
        match endpoint {
            Endpoint::Stdio(ServerCommand { run_as: RunAs::Lockhouse, .. }) => Some(Self::Engine),
            Endpoint::Stdio(ServerCommand { run_as: RunAs::Person, .. }) => Some(Self::User),
            Endpoint::Socket(_) => Some(Self::Service),
            Endpoint::Http(_) => None,
        }
    }

    /// Returns the stable name of the class, for JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::User => "user",
            Self::Service => "service",
        }
    }

    /// Returns the class in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Engine => "of the engine",
            Self::User => "user",
            Self::Service => "service",
        }
    }
}

/// The sandbox of a server that is a child of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerSandbox {
    /// The server has all rights of its account.
    None,
    /// The kernel restricts the server, except for `missing`.
    Restricted { profile: Option<ConfinementProfile>, missing: Vec<KernelGap> },
}

impl ServerSandbox {
    /// Returns the sandbox that a server has on this host; `None` for a server that Lockhouse does not start.
    pub fn of(endpoint: &Endpoint) -> Option<Self> {
        let Endpoint::Stdio(command) = endpoint else { return None };
        Some(command.confinement.as_ref().map_or(Self::None, |confinement| Self::Restricted {
            profile: confinement.profile,
            missing: kernel_gaps(),
        }))
    }

    /// Returns what the kernel does not enforce of the sandbox.
    pub fn missing(&self) -> &[KernelGap] {
        match self {
            Self::None => &[],
            Self::Restricted { missing, .. } => missing,
        }
    }

    /// Returns a stable word for how much the sandbox restricts: `none`, `reduced` or `full`.
    pub fn level(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Restricted { missing, .. } if missing.is_empty() => "full",
            Self::Restricted { .. } => "reduced",
        }
    }

    /// Returns the name of the profile; `None` without a sandbox, and for one that consists of configured paths.
    pub fn profile(&self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Restricted { profile, .. } => profile.map(ConfinementProfile::as_str),
        }
    }
}

/// Shown in tables: the profile, and the names of what is missing.
impl std::fmt::Display for ServerSandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Restricted { missing, .. } = self else { return f.write_str("none") };
        f.write_str(self.profile().unwrap_or("own paths"))?;
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = missing.iter().map(KernelGap::name).collect();
        write!(f, ", without {}", names.join(", "))
    }
}
