//! Attempts in Python that plain Python outside succeeds at. The same program runs in both places.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

use lockhouse_tests::{Finished, Lockhouse, Session, Table, ensure};

const WORDS: &str = "not available in the Lockhouse sandbox";
const NO_PROCESSES: &str = "processes cannot be started in the Lockhouse sandbox";
/// These report failure by what they give back, as they do everywhere.
const SILENT: [&str; 3] = ["ask whether it may read", "posix.system", "walk a directory"];

const FILES: &[(&str, &str)] = &[
    ("read a file", "open('DIR/file').read()"),
    ("read a file with pathlib", "import pathlib\npathlib.Path('DIR/file').read_text()"),
    ("read a file with os.open", "import os\nos.open('DIR/file', os.O_RDONLY)"),
    ("read a file with io.FileIO", "import io\nio.FileIO('DIR/file').read()"),
    ("read a file with posix", "import posix\nposix.open('DIR/file', 0)"),
    ("read /etc/passwd", "open('/etc/passwd').read()"),
    ("read /proc/self/environ", "open('/proc/self/environ').read()"),
    ("read the parent's environment", "import os\nopen(f'/proc/{os.getppid()}/environ').read()"),
    ("write a file", "open('DIR/new', 'w').write('x')"),
    ("write to /dev/shm", "open('/dev/shm/lockhouse-test', 'w').write('x')"),
    ("append to a file", "open('DIR/file', 'a').write('x')"),
    ("make a temporary file", "import tempfile\ntempfile.TemporaryFile().write(b'x')"),
    ("list a directory", "import os\nos.listdir('DIR')"),
    ("scan a directory", "import os\nlist(os.scandir('DIR'))"),
    ("ask for a file's size", "import os\nos.stat('DIR/file')"),
    ("ask whether it may read", "import os\nassert os.access('DIR/file', os.R_OK)"),
    ("make a directory", "import os\nos.mkdir('DIR/below')"),
    ("rename a file", "import os\nos.rename('DIR/renamed', 'DIR/again')"),
    ("remove a file", "import os\nos.remove('DIR/removed')"),
    ("link a file", "import os\nos.symlink('DIR/file', 'DIR/link')"),
    ("change a mode", "import os\nos.chmod('DIR/file', 0o777)"),
    ("read a link", "import os\nos.readlink('/proc/self/exe')"),
    ("change the directory", "import os\nos.chdir('DIR')"),
    (
        "walk a directory",
        "import os\nassert list(os.walk('DIR', onerror=lambda e: exec('raise e', {'e': e})))",
    ),
    ("map a file of its own in memory", "import os\nos.memfd_create('x')"),
];

const NETWORK: &[(&str, &str)] = &[
    ("connect over TCP", "import socket\nsocket.create_connection(('127.0.0.1', TCP)).close()"),
    ("connect over TCP with a bare socket", "import socket\nsocket.socket().connect(('127.0.0.1', TCP))"),
    ("connect over TCP below the library", "import _socket\n_socket.socket().connect(('127.0.0.1', TCP))"),
    ("send over UDP", "import _socket\n_socket.socket(2, 2).sendto(b'x', ('127.0.0.1', UDP))"),
    ("listen", "import _socket\ns = _socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()"),
    ("connect to a unix socket", "import _socket\n_socket.socket(1, 1).connect('DIR/socket')"),
    ("connect to an abstract unix socket", "import _socket\n_socket.socket(1, 1).connect('\\0ABSTRACT')"),
    ("open a netlink socket", "import _socket\n_socket.socket(16, 3, 0).close()"),
    ("resolve a name", "import socket\nsocket.getaddrinfo('localhost', 80)"),
    (
        "open a connection with asyncio",
        "import asyncio\nasyncio.run(asyncio.wait_for(asyncio.open_connection('127.0.0.1', TCP), 5))",
    ),
];

const PROCESSES: &[(&str, &str)] = &[
    ("fork", "import os\nif os.fork() == 0: os._exit(0)\nos.wait()"),
    ("fork below the library", "import posix\nif posix.fork() == 0: posix._exit(0)\nposix.wait()"),
    ("execute", "import os\nos.execv('/bin/true', ['true'])"),
    ("execute below the library", "import posix\nposix.execv('/bin/true', ['true'])"),
    ("spawn", "import os\nos.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)"),
    ("os.system", "import os\nif os.system('true') != 0: raise OSError('no')"),
    ("posix.system", "import posix\nif posix.system('true') != 0: raise OSError('no')"),
    ("os.popen", "import os\nassert os.popen('echo x').read()"),
    ("subprocess", "import subprocess\nsubprocess.run(['/bin/true'], check=True)"),
    (
        "multiprocessing",
        "import multiprocessing\np = multiprocessing.get_context('fork').Process(target=print)\np.start()\np.join()",
    ),
    ("ask whether the parent lives", "import os\nos.kill(os.getppid(), 0)"),
    ("signal the parent", "import os, signal\nos.kill(os.getppid(), signal.SIGCONT)"),
    (
        "signal everybody",
        "import os, signal\nos.kill(os.getpgrp(), 0) if os.getpgrp() > 1 else None\nos.getpgid(1)",
    ),
    ("become another user", "import os\nos.setuid(os.getuid())"),
    ("leave the session", "import os\nos.setpgid(0, 0)"),
    ("be nicer", "import os\nos.nice(0)"),
];

#[tokio::test]
async fn what_plain_python_can_do_outside_is_refused_inside_in_words_and_can_be_caught() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let shared = lockhouse.path("shared");
    std::fs::create_dir(&shared).unwrap();
    // Nothing but the seal stands in the way: everybody may enter and write.
    for directory in [lockhouse.path(""), shared.clone()] {
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let _unix = UnixListener::bind(shared.join("socket")).unwrap();
    let name = format!("lockhouse-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    std::fs::set_permissions(shared.join("socket"), std::fs::Permissions::from_mode(0o777)).unwrap();
    let filled = |code: &str| {
        let ports = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        code.replace("DIR", shared.to_str().unwrap())
            .replace("TCP", &ports.0.to_string())
            .replace("UDP", &ports.1.to_string())
            .replace("ABSTRACT", &name)
    };
    let mut table = Table::new("attempts in Python");
    for (name, code) in [FILES, NETWORK, PROCESSES].concat() {
        for file in ["file", "renamed", "removed"] {
            lockhouse.file(&format!("shared/{file}"), "x");
        }
        let code = filled(code);
        let outcome = inside(&session, name, &code).await;
        for left in ["new", "below", "link", "again"] {
            if shared.join(left).exists() {
                table.row(format!("{name}: left {left}"), Err("it took effect".into()));
            }
        }
        let control = Finished::of(Command::new("/usr/bin/python3").args(["-c", &code]), b"");
        table.row(format!("{name}: control outside"), ensure(control.status == Some(0), control));
        table.row(name, outcome);
        for left in ["new", "link", "again", "below"] {
            let path = shared.join(left);
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path));
        }
    }
    let _ = std::fs::remove_file("/dev/shm/lockhouse-test");
    table.finish();
}

/// Uncaught it ends the run in words; caught, the run goes on.
async fn inside(session: &Session, name: &str, code: &str) -> Result<(), String> {
    let answer = session.run_code("python", code).await;
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    let told = message.contains(WORDS) || message.contains(NO_PROCESSES) || SILENT.contains(&name);
    ensure(answer["status"] == "error" && told, &answer)?;
    let indented = code.replace('\n', "\n  ");
    let caught = format!("try:\n  {indented}\nexcept Exception as error:\n  caught = str(error)\ncaught");
    let answer = session.run_code("python", &caught).await;
    ensure(answer["status"] == "ok" && answer["value"].is_string(), &answer)
}

#[test]
fn importing_what_is_not_there_says_why() {
    let rows = [
        ("python", "import requests", "there is no network"),
        ("python", "import urllib.request", "there is no network"),
        ("python", "import multiprocessing", "processes cannot be started"),
        ("python", "import no_such_module", "[python] preload"),
        ("python", "import fixture", "mcp_tools.fixture"),
        ("typescript", "import fs from 'fs'", WORDS),
        ("typescript", "const fs = require('node:fs')", WORDS),
        ("typescript", "const x = await import('axios')", WORDS),
        ("typescript", "import * as std from 'std'", WORDS),
    ];
    let lockhouse = Lockhouse::with_fixture();
    let mut table = Table::new("imports");
    for (language, code, words) in rows {
        let answer = lockhouse.answer(language, code);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        table.row(format!("{language}: {code}"), ensure(message.contains(words), &answer));
    }
    table.finish();
}
