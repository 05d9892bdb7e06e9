//! What the requirements determine about a server that they admit.

use std::path::PathBuf;

use lockhouse_upstream::{Endpoint, ProgramRequirement, Proxy, ServerDefinition};
use url::Url;

/// What all requirements files together determine about a server that they admit.
#[derive(Debug, Default)]
pub(super) struct Admission {
    /// Whether a file fixes or approves the server. Such a server does not depend on the user's environment.
    pub(super) is_required: bool,
    /// Whether a file decides about servers by their URL.
    pub(super) is_judged_by_url: bool,
    /// The SHA-256 that the server's program must have, if a file approves one.
    pub(super) sha256: Option<String>,
    /// The proxy of the server, if a file approves one and the server's configuration has none.
    pub(super) proxy: Option<Url>,
    /// The path of the server's program, as it was checked.
    pub(super) program: Option<PathBuf>,
}

impl Admission {
    /// Restricts the server to what was checked: its program is executed by its absolute path, so that later changes of
    /// PATH have no effect, and redirects do not lead to a URL that was not checked.
    pub(super) fn apply_to(self, mut definition: ServerDefinition) -> ServerDefinition {
        match &mut definition.endpoint {
            Endpoint::Stdio(command) => {
                if let Some(program) = self.program {
                    command.program = program.to_string_lossy().into_owned();
                }
                command.requirement = self.is_required.then_some(ProgramRequirement { sha256: self.sha256 });
            }
            Endpoint::Http(endpoint) => {
                endpoint.follows_redirects = !self.is_judged_by_url;
                if self.is_required && endpoint.proxy == Proxy::Environment {
                    endpoint.proxy = self.proxy.map_or(Proxy::None, Proxy::Address);
                }
            }
            Endpoint::Socket(_) => {}
        }
        definition
    }
}
