//! A worker that runs native attacks: system calls and C code, as hostile code could execute after it has taken over
//! its interpreter.
//!
//! The zygote and the sandbox are those of Lockhouse. The worker executes the C functions of `hostile/native`. The
//! code that it receives is the name of a function, `call NUMBER ARGUMENT...` for a single system call, or `int80
//! NUMBER` for an i386 system call. `--layers a,b` enables only these sandbox layers. If the configuration has this
//! program as `[javascript] worker`, it runs under the real supervisor.
#![allow(unsafe_code, reason = "a descriptor is copied by number")]

#[path = "../native/calls.rs"]
mod calls;

use std::os::fd::AsRawFd;

use lockhouse_protocol::{CodeError, Job, Outcome, SandboxProfile};
use lockhouse_sandbox::{Layer, Layers, Sandboxed};
use lockhouse_worker::engine::{Engine, EngineError, PreparedEngine};
use lockhouse_worker::tool_host::ToolHost;
use lockhouse_worker::zygote;

/// The number of a descriptor that the zygote has open and that workers must not be able to use. An attack tries to
/// read it.
const INHERITED: i32 = 200;

struct Native;

impl Engine for Native {
    fn prepare(&mut self, _profile: &SandboxProfile) -> Result<PreparedEngine, EngineError> {
        let file = std::fs::File::open("/proc/self/status").map_err(EngineError::new)?;
        // SAFETY: the number is unused; the descriptor stays open as long as the process lives.
        unsafe { libc::dup2(file.as_raw_fd(), INHERITED) };
        Ok("native attacks".to_owned().into())
    }

    fn after_fork(&mut self) {}

    fn attach(&mut self, _sandboxed: &Sandboxed, _host: &'static dyn ToolHost, _memory_bytes: u64) {}

    fn warm(&mut self, _sandboxed: &Sandboxed) {}

    fn run(&mut self, _sandboxed: &Sandboxed, job: &Job) -> Outcome {
        match calls::make(&job.code) {
            Some(result) => Outcome::Value(Some(result.to_string().into_bytes())),
            None => Outcome::Error(CodeError {
                message: format!("no attack {:?}", job.code),
                ..CodeError::default()
            }),
        }
    }
}

/// Returns the sandbox layers that the argument after `--layers` lists, or all layers without that flag.
fn layers() -> Layers {
    let named = std::env::args().skip_while(|argument| argument != "--layers").nth(1);
    let Some(named) = named else { return Layers::ALL };
    let wanted = |layer: &Layer| named.split(',').any(|name| name == layer.name());
    Layer::ALL.into_iter().filter(wanted).fold(Layers::NONE, Layers::with)
}

fn main() {
    if let Err(error) = zygote::run(&mut Native, layers()) {
        eprintln!("native-worker: {error}");
        std::process::exit(1);
    }
}
