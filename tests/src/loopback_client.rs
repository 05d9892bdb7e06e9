//! Sends HTTP requests from other accounts of this host.

use std::process::Command;

use crate::{CommandOutput, build_products};

/// The user and group id of an account without any process or file.
pub const OTHER_ACCOUNT: &str = "61502";

/// A Python program that sends a GET request, and prints the status and the header `Location` of the answer. With the
/// argument `half-close` it closes its side of the connection after the request; with `leave` it closes it entirely, and
/// prints nothing.
const GET: &str = "\
import socket, sys
address, port, path, manner = sys.argv[1:]
s = socket.create_connection((address, int(port)), 20)
s.sendall(f'GET {path} HTTP/1.1\\r\\nHost: localhost:{port}\\r\\nConnection: close\\r\\n\\r\\n'.encode())
if manner == 'leave': sys.exit()
if manner == 'half-close': s.shutdown(socket.SHUT_WR)
head = b''.join(iter(lambda: s.recv(65536), b'')).split(b'\\r\\n\\r\\n')[0].decode().split('\\r\\n')
location = [line.partition(': ')[2] for line in head if line.lower().startswith('location: ')]
print(*head[0].split()[1:2], *location)
";

/// Returns the addresses of this host to which browsers resolve `localhost`.
#[must_use]
pub fn loopback_addresses() -> Vec<&'static str> {
    let exists = |address: &&str| std::net::TcpListener::bind((*address, 0)).is_ok();
    ["127.0.0.1", "::1"].into_iter().filter(exists).collect()
}

/// Sends a GET request to this port of a loopback address, as `account` (a number), or as the account of the tests if it
/// is `None`. Returns the status and the header `Location` of the answer, for example `303 /x`.
#[must_use]
pub fn get_as(account: Option<&str>, address: &str, port: &str, path: &str, manner: &str) -> String {
    get(&mut python_as(account), address, port, path, manner)
}

/// Does the same as [`get_as`], from the sandbox of an upstream server that may use the network.
#[must_use]
pub fn get_confined(address: &str, port: &str, path: &str, manner: &str) -> String {
    get(&mut confined_python(), address, port, path, manner)
}

/// Returns a command that runs Python as `account` (a number), or as the account of the tests if it is `None`.
pub(crate) fn python_as(account: Option<&str>) -> Command {
    match account {
        None => Command::new("/usr/bin/python3"),
        Some(account) => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", account, "--regid", account, "--clear-groups", "/usr/bin/python3"]);
            command
        }
    }
}

/// Returns a command that runs Python in the sandbox of an upstream server that may use the network.
pub(crate) fn confined_python() -> Command {
    let mut command = Command::new(build_products::lockhouse());
    command.args(["confine", "--network", "--read", "/usr", "--", "/usr/bin/python3"]);
    command
}

/// Sends the request with a command that runs Python.
fn get(python: &mut Command, address: &str, port: &str, path: &str, manner: &str) -> String {
    let command = python.env_clear().current_dir("/").args(["-c", GET, address, port, path, manner]);
    let finished = CommandOutput::run(command, b"");
    assert_eq!(finished.status, Some(0), "{finished:?}");
    finished.stdout.trim_end().to_owned()
}
