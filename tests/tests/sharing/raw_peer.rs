//! The protocol between fronts and engines as bytes, so that a test can be either end: of another version, or one that
//! violates it.

use std::collections::HashMap;
use std::io::{Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The grant of the one client of a connection.
pub(super) const CONNECTION_GRANT: &str = "00000000-0000-0000-0000-000000000000";
/// Maximum time until a peer answers.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the head of a further request, which names a grant and claims a name and an identity.
pub(super) fn head(grant: &Value) -> Value {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let id = format!("0199aaaa-0000-7000-8000-{:012x}", LAST.fetch_add(1, Ordering::Relaxed));
    let caller = json!({
        "identity": {"proven": {"name": "token:boss", "client": "boss"}, "owner": 0, "only": null},
        "grant": grant, "client": "boss", "abilities": {"form": false, "url": false, "sampling": false, "roots": false},
    });
    json!({"id": id, "caller": caller})
}

/// Returns the setup that a socket's name contains.
pub(super) fn setup(socket: &Path) -> String {
    let name = socket.file_stem().unwrap().to_str().unwrap();
    name.strip_prefix("engine-").unwrap().to_owned()
}

/// Returns the first message in one direction.
pub(super) fn greeting(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    [&u32::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat()
}

/// Returns a message after the first one, in one frame.
pub(super) fn frame(exchange: u64, message: &str) -> Vec<u8> {
    frame_of_kind(2, exchange, message.as_bytes())
}

/// Returns a frame: 0 is a piece of a part, 1 the end of a part, 2 the end of a message, 3 a ping, 4 the answer to one.
pub(super) fn frame_of_kind(kind: u8, exchange: u64, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[..], &[kind], &exchange.to_be_bytes(), payload].concat()
}

/// Returns a request under the connection's own grant. A program or the arguments of a call are a part of their own.
pub(super) fn request(exchange: u64, request: &Value, body: Option<&str>) -> Vec<u8> {
    let message = json!({"Request": [exchange, head(&json!(CONNECTION_GRANT)), request]}).to_string();
    match body {
        None => frame(exchange, &message),
        Some(body) => [frame_of_kind(1, exchange, message.as_bytes()), frame(exchange, body)].concat(),
    }
}

/// One end of a connection between a front and an engine.
pub(super) struct RawPeer {
    pub(super) stream: UnixStream,
    incomplete: HashMap<u64, Vec<Vec<u8>>>,
}

impl RawPeer {
    /// Connects to an engine as a front of this version, and reads the reply.
    pub(super) fn connect(socket: &Path) -> Self {
        let hello = json!({"Hello": {"version": 3, "setup": setup(socket)}});
        let (peer, reply) = Self::greet(socket, &hello);
        assert!(reply["Welcome"]["version"] == 3, "{reply}");
        peer
    }

    /// Connects to an engine with this greeting, and returns the reply.
    pub(super) fn greet(socket: &Path, hello: &Value) -> (Self, Value) {
        let mut peer = Self::new(UnixStream::connect(socket).unwrap());
        peer.stream.write_all(&greeting(hello)).unwrap();
        let reply = peer.read_greeting().unwrap();
        (peer, reply)
    }

    pub(super) fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        Self { stream, incomplete: HashMap::new() }
    }

    pub(super) fn read_greeting(&mut self) -> Result<Value> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut text = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads the next message: its exchange and its parts.
    pub(super) fn read(&mut self) -> Result<(u64, Vec<Vec<u8>>)> {
        loop {
            let mut header = [0; 13];
            self.stream.read_exact(&mut header)?;
            let mut payload = vec![0; u32::from_be_bytes(header[..4].try_into().unwrap()) as usize];
            self.stream.read_exact(&mut payload)?;
            let exchange = u64::from_be_bytes(header[5..].try_into().unwrap());
            if header[4] == 3 {
                self.stream.write_all(&frame_of_kind(4, 0, b""))?;
            }
            if header[4] >= 3 {
                continue;
            }
            let parts = self.incomplete.entry(exchange).or_insert_with(|| vec![Vec::new()]);
            parts.last_mut().unwrap().extend(payload);
            match header[4] {
                0 => {}
                1 => parts.push(Vec::new()),
                _ => return Ok((exchange, self.incomplete.remove(&exchange).unwrap())),
            }
        }
    }

    /// Reads messages until one in JSON has this member, and returns the member.
    ///
    /// # Panics
    /// If the connection ends before.
    pub(super) fn read_until(&mut self, member: &str) -> Value {
        loop {
            let (_, parts) = self.read().unwrap_or_else(|error| panic!("no {member}: {error}"));
            let mut message: Value = serde_json::from_slice(&parts[0]).unwrap();
            if !message[member].is_null() {
                return message[member].take();
            }
        }
    }

    /// Returns the response to a request.
    ///
    /// # Panics
    /// If the connection ends before.
    pub(super) fn response(&mut self, exchange: u64) -> Value {
        loop {
            let mut response = self.read_until("Response");
            if response[0] == exchange {
                return response[1].take();
            }
        }
    }

    /// Whether the other end closes the connection within this time. Reads and drops what it sends.
    pub(super) fn is_closed_within(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut part = vec![0; 1 << 16];
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            self.stream.set_read_timeout(Some(left)).unwrap();
            match self.stream.read(&mut part) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return false,
                Err(_) => return true,
            }
        }
        false
    }
}
