//! The Tokio runtime, with one thread, on which HTTP transports run. rmcp parses each event where its transport runs,
//! and servers decide how large events are; on a separate thread they do not block other clients.

use parking_lot::Mutex;
use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// Returns a handle to the runtime. The first call starts it; it runs until the process ends.
pub(super) fn handle() -> io::Result<Handle> {
    let mut runtime = RUNTIME.lock();
    if let Some(runtime) = &*runtime {
        return Ok(runtime.handle().clone());
    }
    let started = Builder::new_multi_thread().worker_threads(1).thread_name("http").enable_all().build()?;
    Ok(runtime.insert(started).handle().clone())
}
