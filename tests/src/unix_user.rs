//! AI clients of several accounts of this host, over a Unix domain socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::LATEST_VERSION;
use crate::loopback_client::{confined_python, python_as};

/// A Python program that connects to a socket, sends the MCP requests that it reads from standard input, one in a line, and
/// prints the status and the body of each answer. It ends, and so closes its connection, with its standard input.
const CLIENT: &str = "
import http.client, json, socket, sys
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(sys.argv[1])
connection = Connection('localhost')
try:
    connection.connect()
except OSError as error:
    print(json.dumps({'error': type(error).__name__}), flush=True)
    sys.exit()
print(json.dumps({'connected': True}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    headers = {'Accept': 'application/json, text/event-stream', 'Content-Type': 'application/json', **request['headers']}
    try:
        connection.request('POST', '/mcp', json.dumps(request['body']), headers)
        response = connection.getresponse()
    except OSError as error:
        print(json.dumps({'error': type(error).__name__}), flush=True)
        sys.exit()
    body = json.loads(response.read())
    print(json.dumps({'status': response.status, 'body': body}), flush=True)
";

/// An AI client of an account of this host, with one connection to a Unix domain socket.
pub struct UnixUser {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl UnixUser {
    /// Connects to a socket as `account` (a number), or as the account of the tests if it is `None`.
    ///
    /// # Panics
    /// If the connection fails.
    #[must_use]
    pub fn connect(account: Option<&str>, socket: &Path) -> Self {
        let (user, connected) = Self::try_connect(account, socket);
        assert_eq!(connected["connected"], true, "{connected}");
        user
    }

    /// Connects to a socket as [`Self::connect`]. Also returns `{"connected": true}`, or the Python error as `{"error": …}`.
    ///
    /// # Panics
    /// If Python cannot be started.
    #[must_use]
    pub fn try_connect(account: Option<&str>, socket: &Path) -> (Self, Value) {
        Self::start(&mut python_as(account), socket)
    }

    /// Connects from the sandbox of an upstream server that may use the network.
    ///
    /// # Panics
    /// If the connection fails.
    #[must_use]
    pub fn connect_confined(socket: &Path) -> Self {
        let (user, connected) = Self::start(&mut confined_python(), socket);
        assert_eq!(connected["connected"], true, "{connected}");
        user
    }

    /// Starts the client with a command that runs Python.
    fn start(command: &mut Command, socket: &Path) -> (Self, Value) {
        command.env_clear().current_dir("/").args(["-c", CLIENT]).arg(socket);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut user = Self { input: child.stdin.take(), output, child };
        let connected = user.read();
        (user, connected)
    }

    /// Runs a Python program. Returns the value, the status and the error code of a request that is refused, or the Python error
    /// of a connection that is closed.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn run(&mut self, code: &str) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": LATEST_VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "unix-user", "version": "0"},
        });
        let arguments = json!({"language": "python", "code": code});
        let parameters = json!({"name": "run_code", "arguments": arguments, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters});
        let headers = json!({
            "MCP-Protocol-Version": LATEST_VERSION, "Mcp-Method": "tools/call", "Mcp-Name": "run_code",
        });
        let request = json!({"headers": headers, "body": body});
        let input = self.input.as_mut().expect("it is connected");
        writeln!(input, "{request}").expect("it reads");
        let mut answer = self.read();
        match answer["status"].as_u64() {
            Some(200) => answer["body"]["result"]["structuredContent"]["value"].take(),
            None => answer["error"].take(),
            _ => json!([answer["status"], answer["body"]["error"]]),
        }
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no answer: {line:?}"))
    }
}

/// Closes the connection.
impl Drop for UnixUser {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Lets all accounts of this host connect to a socket in a directory of the test.
///
/// # Panics
/// If there is no such socket.
pub fn permit_all_accounts(socket: &Path) {
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permitted");
    };
    set(socket, 0o666);
    let directories = socket.ancestors().skip(1);
    directories.take_while(|path| !path.ends_with("tmp")).for_each(|path| set(path, 0o755));
}
