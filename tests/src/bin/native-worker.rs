//! A worker that runs native attacks: system calls and C code, as hostile code could execute after it has taken over
//! its interpreter.
//!
//! The zygote and the sandbox are those of Lockhouse. The worker executes the C functions of `hostile/native`. The
//! code that it receives is the name of a function, `call NUMBER ARGUMENT...` for a single system call, or `int80
//! NUMBER` for an i386 system call. `--layers a,b` enables only these sandbox layers. If the configuration has this
//! program as `[javascript] worker`, it runs under the real supervisor.
#![allow(unsafe_code, reason = "the attacks are C functions")]

use std::ffi::c_long;
use std::os::fd::AsRawFd;

use lockhouse_protocol::{CodeError, Job, Outcome, SandboxProfile};
use lockhouse_sandbox::{Layer, Layers, Sandboxed};
use lockhouse_worker::engine::{Engine, EngineError, PreparedEngine};
use lockhouse_worker::tool_host::ToolHost;
use lockhouse_worker::zygote;

include!(concat!(env!("OUT_DIR"), "/attacks.rs"));

/// The number of a descriptor that the zygote has open and that workers must not be able to use. An attack tries to
/// read it.
const INHERITED: i32 = 200;

struct Native;

impl Engine for Native {
    fn prepare(&mut self, _profile: &SandboxProfile) -> Result<PreparedEngine, EngineError> {
        let file = std::fs::File::open("/proc/self/status").map_err(EngineError::new)?;
        // SAFETY: the number is unused; the descriptor stays open as long as the process lives.
        unsafe { libc::dup2(file.as_raw_fd(), INHERITED) };
        Ok(format!("{} native attacks", ATTACKS.len()).into())
    }

    fn after_fork(&mut self) {}

    fn attach(&mut self, _sandboxed: &Sandboxed, _host: &'static dyn ToolHost, _memory_bytes: u64) {}

    fn warm(&mut self, _sandboxed: &Sandboxed) {}

    fn run(&mut self, _sandboxed: &Sandboxed, job: &Job) -> Outcome {
        let result = match job.code.split_once(' ') {
            Some(("call", call)) => bare_call(call),
            Some(("int80", number)) => number.parse().ok().map(int80),
            _ => attack(&job.code),
        };
        match result {
            Some(result) => Outcome::Value(Some(result.to_string().into_bytes())),
            None => Outcome::Error(CodeError {
                message: format!("no attack {:?}", job.code),
                ..CodeError::default()
            }),
        }
    }
}

fn attack(name: &str) -> Option<c_long> {
    let (_, function) = ATTACKS.iter().find(|(known, _)| *known == name)?;
    // SAFETY: the C function takes no arguments. Its other effects are the attack.
    Some(unsafe { function() })
}

/// Makes the system call that `text` states as `NUMBER ARGUMENT...`, with up to six arguments. Returns `-errno` if
/// the call fails, and `None` if the text is invalid.
fn bare_call(text: &str) -> Option<c_long> {
    let mut numbers = text.split(' ').map(str::parse::<c_long>);
    let number = numbers.next()?.ok()?;
    let mut arguments = [0; 6];
    for (argument, given) in arguments.iter_mut().zip(numbers) {
        *argument = given.ok()?;
    }
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the system call is hostile on purpose; this process runs nothing else.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    Some(if result < 0 { -c_long::from(nix::errno::Errno::last_raw()) } else { result })
}

/// Makes an i386 system call (`int 0x80`) whose arguments are 0, and returns its result.
#[cfg(target_arch = "x86_64")]
fn int80(number: c_long) -> c_long {
    let mut result = number;
    // SAFETY: the system call is hostile on purpose; all its arguments are 0.
    unsafe {
        std::arch::asm!(
            "push rbx", "xor ebx, ebx", "int 0x80", "pop rbx",
            inout("rax") result, in("rcx") 0, in("rdx") 0, in("rsi") 0, in("rdi") 0,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    result
}

/// Returns `-ENOSYS`, because this architecture has no `int 0x80` instruction.
#[cfg(not(target_arch = "x86_64"))]
fn int80(_: c_long) -> c_long {
    -c_long::from(libc::ENOSYS)
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
