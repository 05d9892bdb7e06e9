//! Where transports over HTTP run: rmcp parses each event of a stream where its transport runs, and a server decides how
//! large its answers are. On a thread of their own they keep no other client waiting.

use parking_lot::Mutex;
use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

static HTTP: Mutex<Option<Runtime>> = Mutex::new(None);

/// The thread for all servers over HTTP, which is started with the first of them and stays.
pub(super) fn http() -> io::Result<Handle> {
    let mut runtime = HTTP.lock();
    if let Some(runtime) = &*runtime {
        return Ok(runtime.handle().clone());
    }
    let started = Builder::new_multi_thread().worker_threads(1).thread_name("http").enable_all().build()?;
    Ok(runtime.insert(started).handle().clone())
}
