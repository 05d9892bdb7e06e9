//! The layers of the seal by name, so that a test can take one away and see what the others hold.

/// One layer, in the order in which they are put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Namespaces with an empty root and no network.
    Namespaces,
    /// An unprivileged user without capabilities.
    Privileges,
    /// Every descriptor closed but the channel and three pipes to nowhere.
    Descriptors,
    /// Resource limits.
    Limits,
    /// Not dumpable.
    Hardening,
    /// Memory that was writable never becomes executable.
    Mdwe,
    /// Landlock.
    Landlock,
    /// The system-call filter.
    Seccomp,
}

impl Layer {
    /// Every layer.
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

    /// Its name, as tables and tests write it.
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

/// Which layers are put on. The product puts on [`Layers::ALL`] and has no way to say anything else; a worker with fewer is
/// a program of the tests, and the supervisor refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers(u8);

impl Layers {
    /// All of them.
    pub const ALL: Self = Self(u8::MAX);
    /// None of them, for positive controls.
    pub const NONE: Self = Self(0);

    /// Without one of them.
    #[must_use]
    pub const fn without(self, layer: Layer) -> Self {
        Self(self.0 & !(1 << layer as u8))
    }

    /// With one of them.
    #[must_use]
    pub const fn with(self, layer: Layer) -> Self {
        Self(self.0 | 1 << layer as u8)
    }

    /// Whether this one is put on.
    #[must_use]
    pub const fn has(self, layer: Layer) -> bool {
        self.0 & (1 << layer as u8) != 0
    }
}
