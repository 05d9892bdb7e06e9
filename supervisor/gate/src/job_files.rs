//! What a program is told about files of the host before it runs: where it may try to open, write or make them, and why
//! it may not do so elsewhere. The worker uses this to save requests and to name the cause of a refusal; the gate decides.

use lockhouse_protocol::ServerName;
use serde_json::{Value, json};

use super::code_server::files_tool;
use super::{Gate, RunContext};
use lockhouse_host_files::FilePattern;

/// Maximum number of paths that an error text lists.
const LISTED_PATHS_MAX: usize = 10;

impl Gate {
    /// Returns the files of the host that the program of an execution may try to open, and those that were given to it, as
    /// JSON for [`Job::files`](lockhouse_protocol::Job::files). Empty if there are none.
    pub fn job_files(&self, run: &RunContext) -> Vec<u8> {
        let given: Vec<Value> =
            run.files.given.iter().map(|given| json!([given.name, given.bytes])).collect();
        let settings = self.files.settings();
        let is_known = settings.is_on() && run.scope.knows(&settings.name);
        if given.is_empty() && !is_known {
            return Vec::new();
        }
        let mut described = json!({"given": given});
        if is_known {
            described["server"] = settings.name.as_str().into();
            described["home"] = settings.home.as_ref().map(|home| home.to_string_lossy()).into();
            described["read"] = self.describe_access(run, "read", &settings.read);
            described["write"] = self.describe_access(run, "write", &settings.write);
        }
        described.to_string().into_bytes()
    }

    /// Describes one kind of access: the paths of the configuration, the reason why a program may use none of them, if
    /// there is one, and the reason why it may not use other paths. `verb` is the name of the key in the configuration and
    /// of the tool.
    fn describe_access(&self, run: &RunContext, verb: &str, patterns: &[FilePattern]) -> Value {
        let server = &self.files.settings().name;
        let roots: Vec<String> =
            patterns.iter().map(|pattern| pattern.root().to_string_lossy().into_owned()).collect();
        let refusal = self.tool_refusal(run, server, verb);
        let elsewhere = elsewhere(server, verb, &roots);
        let elsewhere =
            refusal.as_ref().map_or(elsewhere.clone(), |refusal| format!("{elsewhere}; {refusal}"));
        json!({"roots": roots, "refusal": refusal, "elsewhere": elsewhere})
    }

    /// Returns why an execution may call a tool of the server `files` with no arguments at all; `None` if it may.
    fn tool_refusal(&self, run: &RunContext, server: &ServerName, tool: &str) -> Option<String> {
        let item = files_tool(tool)?;
        if !run.scope.contains(server, &item) {
            return Some(format!(
                "this run may not use {server}.{tool}, because its grant does not include it"
            ));
        }
        (!self.policy.current().permits_target(server, &item, run.client())).then(|| {
            format!(
                "the policy does not permit {server}.{tool}: a person can add \"{tool}\" to `allow` or `ask` of \
                 [servers.{server}] in the policy"
            )
        })
    }
}

/// Returns the error text for a path that the configuration does not name. `roots` are the paths that it names.
fn elsewhere(server: &ServerName, verb: &str, roots: &[String]) -> String {
    let named = match roots {
        [] => "none".to_owned(),
        roots if roots.len() > LISTED_PATHS_MAX => {
            let more = roots.len() - LISTED_PATHS_MAX;
            format!("{} and {more} more", roots[..LISTED_PATHS_MAX].join(", "))
        }
        roots => roots.join(", "),
    };
    format!(
        "it is not below a path that programs may {verb}, which are: {named}; a person can add a path to `{verb}` of \
         [servers.{server}] in the configuration"
    )
}
