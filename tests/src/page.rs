//! A running `lockhouse page` for tests, and a browser that sends only the requests that a test makes.

use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;

use crate::Lockhouse;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A running `lockhouse page` process. Dropping this kills the process.
#[derive(Debug)]
pub struct Page {
    child: Child,
    _stdin: tokio::process::ChildStdin,
    /// The output of the process. If it were closed, writing would fail.
    _output: Lines<BufReader<Receiver>>,
    /// The address of the page, `localhost:PORT`.
    pub address: String,
    /// The token of the link that the process has printed; empty for the page of a service.
    pub token: String,
}

/// A complete answer of the page.
#[derive(Clone, Debug)]
pub struct PageReply {
    /// The HTTP status.
    pub status: u16,
    /// The head: status line and headers, with names as they were sent.
    pub head: String,
    /// The body, without the framing of chunks.
    pub body: Vec<u8>,
}

/// A browser with a session on the page.
#[derive(Clone, Debug)]
pub struct PageBrowser {
    address: String,
    /// The value of the header `Cookie`.
    pub cookie: String,
    /// The key of the session.
    pub key: String,
}

/// The event stream of an open page.
#[derive(Debug)]
pub struct PageEvents {
    lines: Lines<BufReader<TcpStream>>,
}

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.unwrap_or_else(|_| panic!("no {what}"))
}

impl Page {
    /// Starts `lockhouse page` with these further arguments, and waits for its link.
    ///
    /// # Panics
    /// If the process prints no link.
    pub async fn start(lockhouse: &Lockhouse, arguments: &[&str]) -> Self {
        Self::spawn(lockhouse.command(&[&["page", "--no-open"], arguments].concat())).await
    }

    /// Starts `lockhouse page --service`, and waits until it listens. There is no link: people log in with their access
    /// tokens.
    ///
    /// # Panics
    /// If the process does not listen.
    pub async fn start_service(lockhouse: &Lockhouse) -> Self {
        Self::spawn_service(lockhouse.command(&["page", "--service"])).await
    }

    /// Runs a command that starts `lockhouse page --service`, and waits until it prints its address to standard error.
    ///
    /// # Panics
    /// If the process does not listen.
    pub async fn spawn_service(command: std::process::Command) -> Self {
        let mut command = tokio::process::Command::from(command);
        let mut child = Self::start_command(command.stderr(Stdio::piped()));
        let output = child.stderr.take().expect("its standard error").into_owned_fd();
        Self::connect(child, output.expect("a pipe")).await
    }

    /// Runs a command that starts `lockhouse page`, and waits until it prints a link or its address to standard output.
    ///
    /// # Panics
    /// If the process prints neither.
    pub async fn spawn(command: std::process::Command) -> Self {
        let mut command = tokio::process::Command::from(command);
        let mut child = Self::start_command(command.stdout(Stdio::piped()));
        let output = child.stdout.take().expect("its standard output").into_owned_fd();
        Self::connect(child, output.expect("a pipe")).await
    }

    fn start_command(command: &mut tokio::process::Command) -> Child {
        command.stdin(Stdio::piped()).kill_on_drop(true).spawn().expect("the program starts")
    }

    async fn connect(mut child: Child, output: OwnedFd) -> Self {
        let stdin = child.stdin.take().expect("its standard input");
        let output = Receiver::from_owned_fd(output).expect("a pipe");
        let mut lines = BufReader::new(output).lines();
        let line = in_time("line", lines.next_line()).await.expect("readable").expect("a line");
        let of_link = line.trim_end().strip_prefix("http://").and_then(|link| link.split_once("/#token="));
        let of_service = || Some((line.split_once("listens at ")?.1.split_once(". ")?.0, ""));
        let (address, token) = of_link.or_else(of_service).unwrap_or_else(|| panic!("no address: {line}"));
        let (address, token) = (address.to_owned(), token.to_owned());
        Self { child, _stdin: stdin, _output: lines, address, token }
    }

    /// Returns the port of the page.
    ///
    /// # Panics
    /// If the page has no port.
    #[must_use]
    pub fn port(&self) -> &str {
        self.address.rsplit_once(':').expect("a port").1
    }

    /// Returns the process id.
    ///
    /// # Panics
    /// If the process has ended.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("a running process")
    }

    /// Sends a request as these bytes, and returns the complete answer. The request must ask to close the connection.
    pub async fn send(&self, request: impl AsRef<[u8]>) -> PageReply {
        send(&self.address, request.as_ref()).await
    }

    /// Logs in with this token, and returns the answer.
    pub async fn log_in(&self, token: &str) -> PageReply {
        let body = json!({"token": token}).to_string();
        let headers = [("Content-Type", "application/json"), ("X-Lockhouse-Page", "login")];
        self.send(request(&self.address, "POST", "/api/login", &headers, &body)).await
    }

    /// Begins a session with the token of the printed link.
    ///
    /// # Panics
    /// If the login fails.
    pub async fn browser(&self) -> PageBrowser {
        self.browser_of(&self.token).await
    }

    /// Begins a session with this token.
    ///
    /// # Panics
    /// If the login fails.
    pub async fn browser_of(&self, token: &str) -> PageBrowser {
        let reply = self.log_in(token).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let cookie = reply.header("set-cookie").split(';').next().unwrap_or_default().to_owned();
        let key = reply.json()["key"].as_str().expect("a key").to_owned();
        PageBrowser { address: self.address.clone(), cookie, key }
    }
}

/// Returns a request with these headers, and with `Host` and `Connection: close`.
#[must_use]
pub fn request(host: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if method == "POST" {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    text + "\r\n" + body
}

async fn send(address: &str, request: &[u8]) -> PageReply {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // The server may answer and close before it has read a request that is too large.
    let _ = stream.write_all(request).await;
    let mut bytes = Vec::new();
    let _ = in_time("answer", stream.read_to_end(&mut bytes)).await;
    PageReply::parse(&bytes)
}

impl PageReply {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
        let head = text.split("\r\n\r\n").next().unwrap_or_default().to_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let reply = Self { status, head, body: bytes[end..].to_vec() };
        assert!(
            !reply.header("transfer-encoding").contains("chunked"),
            "only event streams are chunked: {text}"
        );
        reply
    }

    /// Returns the value of a header, or an empty text.
    #[must_use]
    pub fn header(&self, name: &str) -> String {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
            .unwrap_or_default()
    }

    /// Returns the body as JSON, or `null` if it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the code of the error in the body, or an empty text.
    #[must_use]
    pub fn error_code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl PageBrowser {
    /// Returns the headers that the page's script and the browser send with each request.
    #[must_use]
    pub fn headers(&self) -> Vec<(&str, &str)> {
        vec![("Cookie", &self.cookie), ("X-Lockhouse-Page", &self.key)]
    }

    /// Requests data.
    pub async fn get(&self, path: &str) -> PageReply {
        send(&self.address, request(&self.address, "GET", path, &self.headers(), "").as_bytes()).await
    }

    /// Requests an action with this body.
    pub async fn post(&self, path: &str, body: Value) -> PageReply {
        let mut headers = self.headers();
        headers.push(("Content-Type", "application/json"));
        send(&self.address, request(&self.address, "POST", path, &headers, &body.to_string()).as_bytes())
            .await
    }

    /// Opens the event stream.
    ///
    /// # Panics
    /// If the stream is not opened.
    pub async fn events(&self) -> PageEvents {
        self.try_events().await.unwrap_or_else(|head| panic!("no events: {head}"))
    }

    /// Opens the event stream, or returns the first line of the answer.
    ///
    /// # Errors
    /// If the page answers with another status than 200.
    ///
    /// # Panics
    /// If the page does not answer.
    pub async fn try_events(&self) -> Result<PageEvents, String> {
        let mut stream = TcpStream::connect(&self.address).await.expect("a connection");
        let request = request(&self.address, "GET", "/api/events", &self.headers(), "");
        stream.write_all(request.as_bytes()).await.expect("written");
        let mut lines = BufReader::new(stream).lines();
        let first = in_time("answer", lines.next_line()).await.expect("readable").unwrap_or_default();
        if first.contains(" 200 ") { Ok(PageEvents { lines }) } else { Err(first) }
    }
}

impl PageEvents {
    /// Waits for the next event with this name, and returns its data.
    ///
    /// # Panics
    /// If no such event arrives.
    pub async fn next(&mut self, name: &str) -> Value {
        self.until(name, |_| true).await
    }

    /// Waits for an event with this name whose data meets the condition, and returns its data.
    ///
    /// # Panics
    /// If no such event arrives.
    pub async fn until(&mut self, name: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let reading = async {
            let mut event = String::new();
            loop {
                let line = self.lines.next_line().await.expect("readable").expect("an open stream");
                if let Some(name) = line.strip_prefix("event: ") {
                    event = name.to_owned();
                } else if let Some(data) = line.strip_prefix("data: ").filter(|_| event == name) {
                    last = serde_json::from_str(data).expect("JSON");
                    if condition(&last) {
                        return;
                    }
                }
            }
        };
        let arrived = tokio::time::timeout(TIMEOUT, reading).await.is_ok();
        assert!(arrived, "no such event {name}; the last one was {last}");
        last
    }

    /// Waits until the server ends the stream.
    ///
    /// # Panics
    /// If the stream does not end.
    pub async fn ended(&mut self) {
        in_time("end", async { while let Ok(Some(_)) = self.lines.next_line().await {} }).await;
    }
}
