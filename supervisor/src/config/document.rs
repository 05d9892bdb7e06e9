//! `config.toml` as it is written. Every key has a default, and a key that is not declared is an error.

use lockhouse_policies::{Diagnostics, Source};
use lockhouse_upstream::ServerLimits;
use serde::de::IgnoredAny;

use super::dialects::{self, Listed};
use super::excerpts::Excerpts;
use super::http::Http;
use super::keys::{DeclaredTable, table};
use super::partial::{self, Read};
use super::references::{Surroundings, referenced_files};
use super::tables::{
    Approvals, Audit, Catalogue, Clients, JavaScript, Limits, Log, Metrics, Pool, Python, Results, Runs,
    Service, Sessions, Skills, Tools,
};

table! {
    /// The whole file.
    pub(super) struct Document = "" {
        /// AI clients' own files, read besides what is below: see Servers of AI clients
        servers_files: Vec<String> = Vec::new(), like "[\"~/.claude.json\"]";
        table limits: Limits;
        table pool: Pool;
        table sessions: Sessions;
        table runs: Runs;
        table python: Python;
        table javascript: JavaScript;
        table audit: Audit;
        table approvals: Approvals;
        table catalogue: Catalogue;
        table results: Results;
        table skills: Skills;
        table http: Http;
        table clients: Clients;
        table service: Service;
        table metrics: Metrics;
        table log: Log;
        table tools: Tools;
        // Read by `dialects::read_own`, which knows what must not be shown.
        beside #[serde(rename = "servers")] server_tables: IgnoredAny;
        beside #[serde(skip)] servers: Vec<Listed>;
        // The SHA-256 of the file.
        beside #[serde(skip)] digest: Option<String>;
        // Paths in references of its text.
        beside #[serde(skip)] referenced_files: Vec<String>;
    }
}

/// A key that does not go together with another one.
struct Contradiction {
    key: &'static str,
    other: &'static str,
    use_instead: &'static str,
}

impl Document {
    /// Reads and checks the file.
    pub(super) fn parse(source: &Source, surroundings: &Surroundings) -> Result<Self, Diagnostics> {
        let declared = Self::spec();
        let excerpts = Excerpts::new(source, &declared);
        let Read { mut document, misfits, root } =
            partial::read::<Self>(&source.text, &declared).map_err(|misfit| excerpts.misfit(misfit))?;
        let mut faults: Vec<_> = misfits.into_iter().map(|misfit| excerpts.misfit(misfit)).collect();
        faults.extend(document.out_of_range().into_iter().map(|wrong| {
            let span = partial::span_of(&root, &wrong.key);
            excerpts.value(span, &format!("{} is out of range", wrong.key), format!("use {}", wrong.range))
        }));
        faults.extend(document.contradictions().map(|wrong| {
            // Where the one has its default, the other one makes the fault.
            let span = partial::span_of(&root, wrong.key).or_else(|| partial::span_of(&root, wrong.other));
            let (title, label) =
                (format!("{} is out of range", wrong.key), format!("use {}", wrong.use_instead));
            excerpts.value(span, &title, label)
        }));
        match dialects::read_own(source, &root, surroundings) {
            Ok(servers) => document.servers = servers,
            Err(of_servers) => faults.extend(of_servers.0),
        }
        if !faults.is_empty() {
            return Err(Diagnostics(faults));
        }
        document.referenced_files = referenced_files(&source.text).map(str::to_owned).collect();
        Ok(document)
    }

    /// Keys that are each within their range, and not what another one needs.
    fn contradictions(&self) -> impl Iterator<Item = Contradiction> {
        let (limits, http) = (&self.limits, &self.http.limits);
        let code = (limits.code_kib >= limits.frame_kib).then_some(Contradiction {
            key: "limits.code_kib",
            other: "limits.frame_kib",
            use_instead: "less than frame_kib: code travels in one message",
        });
        let bodies = (!http.has_room_for_a_body(limits.code_kib)).then_some(Contradiction {
            key: "http.limits.bodies_mib",
            other: "http.limits.body_kib",
            use_instead: "at least body_kib: one body must have room",
        });
        code.into_iter().chain(bodies)
    }

    /// Puts the home directory in place of a leading `~` of every path that is not expanded where it is used.
    pub(super) fn expand_home(&mut self, surroundings: &Surroundings) {
        let Self { python, javascript, audit, .. } = self;
        let paths =
            [&mut python.interpreter, &mut python.extension, &mut javascript.worker, &mut audit.directory];
        for path in paths.into_iter().flatten() {
            *path = surroundings.expand_home(&path.to_string_lossy());
        }
    }

    /// The tables that differ and are looked at only when Lockhouse starts.
    pub(super) fn that_need_a_restart(&self, other: &Self) -> Vec<&'static str> {
        self.tables_that_differ(other)
    }

    /// What servers get by default.
    pub(super) fn server_limits(&self) -> ServerLimits {
        // A message holds its result twice where a server sends structured content and the same as text.
        let message_bytes_max = self.limits.frame_kib as usize * 1024 * 3;
        ServerLimits { message_bytes_max, ..ServerLimits::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> String {
        let source = Source { path: "config.toml".into(), text: text.into() };
        Document::parse(&source, &Surroundings::default()).expect_err("a fault").to_string()
    }

    #[test]
    fn an_empty_file_has_every_default() {
        let source = Source { path: "config.toml".into(), text: String::new() };
        assert!(Document::parse(&source, &Surroundings::default()).is_ok());
    }

    #[test]
    fn faults_show_no_line_of_a_server_and_no_value_of_its_environment() {
        for (text, told) in [
            ("[servers.x]\ncommand = 'a'\nenvv = {T = 'SEKRET'}\n", "config.toml:3"),
            (
                "[servers.x]\ncommand = 'a'\nenv = 'T=SEKRET, expected'\n",
                "servers.x: env: expected a table of strings",
            ),
            (
                "[servers.x]\ncommand = 'a'\nenv = {T = 'SEKRET', U = 3}\n",
                "servers.x: env: \"U\": expected a string",
            ),
            ("[limits]\n[servers.x.env]\nT = 'SEKRET\n", "config.toml:3"),
            (
                "servers = {x = {command = 'a', env = {T = ['SEKRET']}}}\n",
                "servers.x: env: \"T\": expected a string",
            ),
            ("servers = {'a b' = {command = 'a', env = {T = 'SEKRET'}}}\n", "config.toml:1"),
            ("[servers.x]\ncommand = 'a'\nenv = {T = 'SEKRET idle'}\n[pool]\nidle = 0\n", "config.toml:5"),
            ("[server.x]\ncommand = 'a'\nenv = {T = 'SEKRET'}\n", "unknown key `server`"),
        ] {
            let fault = faults(text);
            assert!(fault.contains(told) && !fault.contains("SEKRET"), "{text}: {fault}");
        }
    }

    /// Each key stands where another one, a comment or a text has its name as well.
    #[test]
    fn a_fault_names_the_line_of_its_own_key() {
        for (text, place) in [
            ("[sessions]\nidle_seconds = 5\n[pool]\nidle = 0\n", "config.toml:4:8"),
            ("[pool] # idle\n# idle = 0\nrunning = 4\nidle = 0\n", "config.toml:4:8"),
            ("[clients]\nrunning = 3\n[pool]\nrunning = 0\n", "config.toml:4:11"),
            ("[audit]\nredact = [\n'idle = 0',\n]\n[pool]\nidle = 0\n", "config.toml:6:8"),
            ("pool.idle = 0\n", "config.toml:1:13"),
            ("[pool]\n# for each environment of the servers\nidle = 0\n", "config.toml:3:8"),
            ("[limits]\nframe_kib = 100\n", "config.toml:2:13"),
            ("[http.limits]\nbody_kib = 20000\nbodies_mib = 2\n", "config.toml:3:14"),
        ] {
            let told = faults(text);
            assert!(told.contains(&format!(" {place}\n")), "{text}{told}");
        }
    }

    #[test]
    fn faults_name_the_line_and_what_to_do() {
        let unknown = faults("[limits]\ntimeout = 3\n");
        assert!(unknown.contains("config.toml:2") && unknown.contains("timeout_seconds"), "{unknown}");
        let range = faults("[pool]\nidle = 0\n\n[limits]\nmemory_mib = 1\n");
        assert!(range.contains("1 to 64") && range.contains("config.toml:5"), "{range}");
        let name = faults("[servers.\"a b\"]\ncommand = \"x\"\n");
        assert!(name.contains("config.toml:1") && name.contains("A-Z"), "{name}");
    }
}
