//! The Tokio runtime, with one thread, on which the HTTP transports to upstream servers run. rmcp parses each event on
//! the thread of the transport, and servers decide how large events are. On a separate thread, large events do not
//! block AI clients.

use parking_lot::Mutex;
use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// Returns a handle to the runtime for HTTP transports. The first call starts the runtime, which runs until the process
/// ends.
pub(super) fn handle() -> io::Result<Handle> {
    let mut runtime = RUNTIME.lock();
    if let Some(runtime) = &*runtime {
        return Ok(runtime.handle().clone());
    }
    let started = Builder::new_multi_thread().worker_threads(1).thread_name("http").enable_all().build()?;
    Ok(runtime.insert(started).handle().clone())
}
