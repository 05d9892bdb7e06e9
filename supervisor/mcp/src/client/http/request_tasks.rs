//! The tasks in which HTTP requests of one connection run.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::{CANCEL_TIMEOUT, SEND_TIMEOUT};
use crate::answer_error::ResponseError;

/// The tasks of the requests that are not answered yet, by their ids. Clones share them.
#[derive(Clone)]
pub(super) struct RequestTasks {
    tasks: Arc<Mutex<HashMap<i64, AbortHandle>>>,
    runtime: Handle,
}

impl RequestTasks {
    /// Creates a set whose tasks run on `runtime`.
    pub(super) fn new(runtime: Handle) -> Self {
        Self { tasks: Arc::default(), runtime }
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Starts the task of a request.
    pub(super) fn start(&self, id: i64, request: impl Future<Output = ()> + Send + 'static) {
        let finished = self.tasks.clone();
        // The task removes itself, so it must not end before it is added.
        let mut tasks = self.tasks.lock();
        let task = self.runtime.spawn(async move {
            request.await;
            finished.lock().remove(&id);
        });
        tasks.insert(id, task.abort_handle());
    }

    /// Aborts the task of a request, if it still runs.
    pub(super) fn abort(&self, id: i64) {
        if let Some(task) = self.tasks.lock().remove(&id) {
            task.abort();
        }
    }

    pub(super) fn abort_all(&self) {
        self.tasks.lock().drain().for_each(|(_, task)| task.abort());
    }

    /// Sends a message in a task of its own, which is aborted if the returned future is dropped.
    pub(super) fn send(
        &self,
        sending: impl Future<Output = Result<(), ResponseError>> + Send + 'static,
    ) -> BoxFuture<'static, Result<(), ResponseError>> {
        let mut task = JoinSet::new();
        task.spawn_on(timeout(SEND_TIMEOUT, sending), &self.runtime);
        async move {
            match task.join_next().await {
                Some(Ok(Ok(sent))) => sent,
                Some(Ok(Err(_))) => Err(ResponseError::Timeout(SEND_TIMEOUT)),
                _ => Err(ResponseError::Closed),
            }
        }
        .boxed()
    }

    /// Sends a cancellation in a task of its own. Nobody waits for it.
    pub(super) fn send_cancellation(
        &self,
        sending: impl Future<Output = Result<(), ResponseError>> + Send + 'static,
    ) {
        self.runtime.spawn(timeout(CANCEL_TIMEOUT, sending));
    }
}
