//! A service process, such as the front for HTTP, that makes native attacks as hostile code could after it has taken over the
//! process. The sandbox is that of the product, and is entered in the order of the product's processes.
//!
//! `native-service parent KIND [LAYER,...]` is the parent of such processes, whose standard input has one attack in a line;
//! `native-service service LISTENER KIND [LAYER,...]` is one of them. Only the listed layers are applied, or all.
#![allow(clippy::print_stderr, reason = "its parent reads why it failed")]

#[path = "../native/calls.rs"]
mod calls;
#[path = "../native/service_parent.rs"]
mod service_parent;
#[path = "../native/targets.rs"]
mod targets;

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};

use lockhouse_sandbox::{Layer, Layers, MappedMemory, ServiceKind, ServiceLimits, ServiceSandbox};

/// The number of a descriptor that the parent has open and that its service processes must not be able to use. An attack tries
/// to read it.
const INHERITED: RawFd = 200;
/// The user of a service process that root starts.
const ACCOUNT: u32 = 61_501;
const LIMITS: ServiceLimits = ServiceLimits { memory_bytes: 256 << 20, descriptors: 64 };

/// In place of layers: a thread that is started too early.
const EARLY_THREAD: &str = "early-thread";

/// The second thread of a front, which parses large bodies in the product: it makes the attacks that it is sent.
struct Second {
    requests: Sender<String>,
    results: Receiver<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((role, rest)) if role == "parent" => service_parent::run(rest).map_err(Into::into),
        Some((_, rest)) => serve(rest),
        None => Err("parent or service is needed".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("native-service: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Enters the sandbox, and makes one attack after the other.
fn serve(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [listener, kind, layers @ ..] = arguments else { return Err("LISTENER and KIND are needed".into()) };
    let layers_named = layers.first().map_or("", String::as_str);
    let layers = if layers.is_empty() { Layers::ALL } else { chosen(layers_named) };
    let listener = listener.parse()?;
    let kind = if kind == "front" { ServiceKind::Front } else { ServiceKind::Signer };
    let mapped = MappedMemory::of_this_process()?;
    let account = nix::unistd::geteuid().is_root().then_some(ACCOUNT);
    let sandbox = ServiceSandbox::prepare(kind, layers, account, &[listener])?;
    let mut own = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut requests = BufReader::new(own.try_clone()?);
    let mut request = String::with_capacity(4096);
    if layers_named == EARLY_THREAD {
        std::thread::spawn(std::thread::park);
    }
    sandbox.restrict_files()?;
    let second = (kind == ServiceKind::Front).then(|| second_thread(listener)).transpose()?;
    sandbox.seal(&LIMITS, mapped)?;
    writeln!(own, "sealed")?;
    while requests.read_line(&mut request)? > 0 {
        let result = match (request.trim().strip_prefix("thread "), &second) {
            (Some(attack), Some(second)) => {
                second.requests.send(attack.to_owned())?;
                second.results.recv()?
            }
            _ => attack(request.trim(), listener),
        };
        own.write_all(result.as_bytes())?;
        request.clear();
    }
    Ok(())
}

/// Starts the second thread, and waits until it runs: the start of a thread needs system calls that the filter does not allow.
fn second_thread(listener: RawFd) -> Result<Second, Box<dyn Error>> {
    let ((requests, received), (answers, results)) = (channel::<String>(), channel());
    std::thread::spawn(move || {
        // When nothing receives it, the process ends.
        let mut is_heard = answers.send("ready".to_owned()).is_ok();
        while let (true, Ok(request)) = (is_heard, received.recv()) {
            is_heard = answers.send(attack(&request, listener)).is_ok();
        }
    });
    results.recv()?;
    Ok(Second { requests, results })
}

/// Makes an attack, and returns its result as a line.
fn attack(request: &str, listener: RawFd) -> String {
    let result = targets::make(request, listener).or_else(|| calls::make(request));
    result.map_or_else(|| format!("no attack {request:?}\n"), |result| format!("{result}\n"))
}

/// Returns the layers of which this has the names, separated by commas.
fn chosen(named: &str) -> Layers {
    let wanted = |layer: &Layer| named.split(',').any(|name| name == layer.name());
    Layer::ALL.into_iter().filter(wanted).fold(Layers::NONE, Layers::with)
}
