//! Named layers of the sandbox. Tests can leave out single layers to see what the others stop.

/// A layer of the sandbox. The variants are in the order in which the layers are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Namespaces with an empty root directory and no network.
    Namespaces,
    /// An unprivileged user without Linux capabilities.
    Privileges,
    /// All descriptors closed except the channel and the standard streams.
    Descriptors,
    /// Resource limits (rlimits) on memory, threads, files and CPU time.
    Limits,
    /// The process is not dumpable.
    Hardening,
    /// Memory that was writable can never become executable (`PR_SET_MDWE`).
    Mdwe,
    /// The Landlock ruleset.
    Landlock,
    /// The seccomp filter.
    Seccomp,
}

impl Layer {
    /// All layers, in the order of application.
    pub const ALL: [Self; 8] = [
        Self::Namespaces,
        Self::Privileges,
        Self::Descriptors,
        Self::Limits,
        Self::Hardening,
        Self::Mdwe,
        Self::Landlock,
        Self::Seccomp,
    ];

    /// Returns the name of the layer in the tables and headers of tests and in the option `--layers` of the test
    /// worker.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Privileges => "privileges",
            Self::Descriptors => "descriptors",
            Self::Limits => "limits",
            Self::Hardening => "hardening",
            Self::Mdwe => "mdwe",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
        }
    }
}

/// A set of layers. The product always applies [`Layers::ALL`]; only test programs apply fewer, and the supervisor
/// rejects such workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers(u8);

impl Layers {
    /// The set of all layers.
    pub const ALL: Self = Self(u8::MAX);
    /// The set without layers, for positive controls in tests.
    pub const NONE: Self = Self(0);

    /// Returns the set without this layer.
    #[must_use]
    pub const fn without(self, layer: Layer) -> Self {
        Self(self.0 & !(1 << layer as u8))
    }

    /// Returns the set with this layer added.
    #[must_use]
    pub const fn with(self, layer: Layer) -> Self {
        Self(self.0 | 1 << layer as u8)
    }

    /// Returns whether the set contains a layer.
    #[must_use]
    pub const fn has(self, layer: Layer) -> bool {
        self.0 & (1 << layer as u8) != 0
    }
}
