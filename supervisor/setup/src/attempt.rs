//! The further attempts of `lockhouse setup` to start a server that did not start in the sandbox.

use lockhouse_upstream::{Endpoint, ServerDefinition};

/// Words, in lower case, of servers that need user namespaces, such as those of Chromium and bubblewrap.
const NAMESPACE_SIGNS: [&str; 4] = ["namespace", "unshare", "no usable sandbox", "operation not permitted"];

/// A further attempt to start a server that did not list its tools in the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// In the sandbox, with user namespaces.
    UserNamespaces,
    NoSandbox,
}

impl Attempt {
    /// Whether the attempt may succeed after this error. Each one may take as long as the first start.
    pub fn may_help(self, error: &str) -> bool {
        let error = error.to_lowercase();
        self == Self::NoSandbox || NAMESPACE_SIGNS.iter().any(|sign| error.contains(sign))
    }

    pub fn changed(self, mut definition: ServerDefinition) -> ServerDefinition {
        if let Endpoint::Stdio(command) = &mut definition.endpoint {
            match self {
                Self::UserNamespaces => {
                    command.confinement.iter_mut().for_each(|it| it.user_namespaces = true)
                }
                Self::NoSandbox => command.confinement = None,
            }
        }
        definition
    }
}
