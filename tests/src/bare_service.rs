//! Service processes (such as the front for HTTP) without the product: a test leaves layers out, and lets native code attack.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lockhouse_protocol::Exit;
use lockhouse_sandbox::{Layer, Layers};
use serde_json::Value;

use crate::End;

/// A process that starts a service process for each attack, as the engine starts its fronts.
#[derive(Debug)]
pub struct BareService {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pids: Value,
}

impl BareService {
    /// Starts the parent of service processes of a kind, `front` or `signer`, with these layers. `directory` has the programs,
    /// `user` starts them under another user id, which requires root, and `lack` names a feature that the kernel seems not to
    /// have, as the program `lacking` knows it.
    ///
    /// # Panics
    /// If a service process with these layers cannot be started.
    #[must_use]
    pub fn start(
        directory: &Path,
        kind: &str,
        layers: Layers,
        user: Option<u32>,
        lack: Option<&str>,
    ) -> Self {
        let on: Vec<&str> =
            Layer::ALL.into_iter().filter(|layer| layers.has(*layer)).map(Layer::name).collect();
        let program = directory.join("native-service");
        let mut command = Command::new(lack.map_or(program.clone(), |_| directory.join("lacking")));
        command.args(lack.iter().flat_map(|lack| [lack.as_ref(), "--".as_ref(), program.as_os_str()]));
        command
            .args(["parent", kind, &on.join(",")])
            .env_clear()
            .env("SECRET", "of the engine")
            .current_dir("/");
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut service = Self { input: child.stdin.take(), child, output, pids: Value::Null };
        service.pids = service.read();
        service
    }

    /// Starts a process and lets it make an attack, in which `{PARENT}` and `{OTHER}` stand for the process ids of its parent
    /// and of another service process. Returns how the attack ended, what the process wrote to its standard error, and what it
    /// sent to the client that is connected to its listener.
    ///
    /// # Panics
    /// If the parent has ended.
    #[must_use]
    pub fn attack(&mut self, attack: &str) -> (End, String, String) {
        let (parent, other) = (self.pids["parent"].to_string(), self.pids["other"].to_string());
        let request = attack.replace("{PARENT}", &parent).replace("{OTHER}", &other);
        writeln!(self.input.as_ref().expect("its input"), "{request}").expect("it reads");
        let answer = self.read();
        let number = |name: &str| answer[name].as_i64().map(|number| number as i32);
        let end = match (answer["value"].as_str(), number("signal"), number("status")) {
            (Some(value), ..) if value.parse::<i64>().is_ok() => End::Value(value.to_owned()),
            (None, Some(signal), _) => End::Exited(Exit::Signal(signal)),
            (None, None, Some(status)) => End::Exited(Exit::Status(status)),
            _ if answer["timeout"] == true => End::TimedOut,
            _ => End::Other(answer.to_string()),
        };
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        (end, text("log"), text("client"))
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no answer: {line:?}"))
    }
}

/// Ends the processes.
impl Drop for BareService {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
