//! The fronts that serve the same sockets, one after the other. A front is replaced when it is lost, and when it has served for
//! long enough: an attacker may hold it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_engine::FrontBudget;
use lockhouse_engine::supervisor::Supervisor;
use lockhouse_front::http::{FrontUpdate, HttpSettings, HttpSockets};
use lockhouse_link::SetupSender;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::current_signer::{CurrentSigner, FrontChannel};
use super::front_child::FrontStarter;
use super::front_process::FrontProcess;
use super::service_process::ProcessError;
use super::{RESTART_PAUSE, RESTART_PAUSE_MAX};

/// How long a front that was replaced may serve the requests that it has. A request waits for its run for 4 minutes at most.
/// Bound: engines and fronts.
const RETIREMENT_MAX: Duration = Duration::from_secs(10 * 60);

/// The fronts of some sockets.
pub(super) struct FrontSeries {
    settings: HttpSettings,
    sockets: HttpSockets,
    starter: FrontStarter,
    signer: Arc<CurrentSigner>,
    /// The first front, until it is served.
    first: Mutex<Option<FrontProcess>>,
    channel: FrontChannel,
}

impl FrontSeries {
    /// Starts the first front.
    pub(super) async fn start(
        settings: HttpSettings,
        sockets: HttpSockets,
        starter: FrontStarter,
        signer: Arc<CurrentSigner>,
    ) -> Result<Self, ProcessError> {
        let (first, channel) = Default::default();
        let series = Self { settings, sockets, starter, signer, first, channel };
        let first = series.start_front().await?;
        *series.first.lock().await = Some(first);
        Ok(series)
    }

    /// Returns where the current front gets its certificates.
    pub(super) fn channel(&self) -> FrontChannel {
        self.channel.clone()
    }

    /// Serves AI clients until the engine closes.
    ///
    /// # Errors
    /// The last front failed while the engine closed.
    pub(super) async fn serve(&self, supervisor: &Arc<Supervisor>) -> Result<(), ProcessError> {
        let refusing = async {
            supervisor.lifecycle().refusing().cancelled().await;
            self.sockets.ignore_connections();
            supervisor.lifecycle().closing().cancelled().await;
            self.sockets.refuse_connections();
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            never = refusing => match never {},
            served = self.serve_fronts(supervisor) => served,
        }
    }

    async fn serve_fronts(&self, supervisor: &Arc<Supervisor>) -> Result<(), ProcessError> {
        let mut next = self.first.lock().await.take();
        let mut retired = JoinSet::new();
        loop {
            let front = match next.take() {
                Some(front) => front,
                None => tokio::select! {
                    front = self.start_next_front() => front,
                    () = supervisor.lifecycle().closing().cancelled() => return Ok(()),
                },
            };
            let channel = front.channel();
            self.make_current(&front).await;
            let budget = FrontBudget::new(self.settings.limits.front_requests);
            let mut serving = Box::pin(front.serve(supervisor.clone(), budget.clone()));
            let ended = tokio::select! {
                ended = &mut serving => ended,
                replacement = self.replacement(&budget) => {
                    next = Some(replacement);
                    retired.spawn(retire(channel, serving));
                    while retired.try_join_next().is_some() {}
                    continue;
                }
            };
            self.channel.set(None).await;
            if supervisor.lifecycle().closing().is_cancelled() {
                while retired.join_next().await.is_some() {}
                return ended;
            }
            let reason = ended.err().map_or_else(|| "it ended".to_owned(), |error| error.to_string());
            tracing::error!(
                "the front was lost, with the connections of its AI clients; another one starts: {reason}"
            );
        }
    }

    /// Waits until a front has served for `front_seconds`, or `front_requests` requests, and starts another one.
    async fn replacement(&self, budget: &FrontBudget) -> FrontProcess {
        tokio::select! {
            () = sleep(self.settings.limits.front_lifetime) => {}
            () = budget.spent() => {}
        }
        self.start_next_front().await
    }

    /// Starts a front in place of the current one or of one that was lost. Tries until it succeeds.
    async fn start_next_front(&self) -> FrontProcess {
        let mut pause = RESTART_PAUSE;
        loop {
            match self.start_front().await {
                Ok(front) => return front,
                Err(error) => tracing::error!("no front can be started: {error}; trying again"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(RESTART_PAUSE_MAX);
        }
    }

    async fn start_front(&self) -> Result<FrontProcess, ProcessError> {
        let mut front = FrontProcess::start(&self.settings, &self.sockets, &self.starter).await?;
        front.signer = self.signer.send_certificate(&front.channel(), None).await?;
        front.verified().await
    }

    /// Sends each further certificate to this front, and the current one if it has changed since the front started.
    async fn make_current(&self, front: &FrontProcess) {
        self.channel.set(Some(front.channel())).await;
        if let Err(error) = self.signer.send_certificate(&front.channel(), front.signer).await {
            tracing::error!("the front has not got the current certificate: {error}");
        }
    }
}

/// Lets a front serve the requests that it has, and then end.
async fn retire(channel: Arc<SetupSender>, serving: impl Future<Output = Result<(), ProcessError>>) {
    let retiring = async {
        match channel.send(&FrontUpdate::Retire, &[]).await {
            Ok(()) => sleep(RETIREMENT_MAX).await,
            Err(error) => tracing::warn!("a front that was replaced does not answer: {error}"),
        }
    };
    tokio::select! {
        ended = serving => if let Err(error) = ended {
            tracing::warn!("a front that was replaced: {error}");
        },
        // It is killed.
        () = retiring => {}
    }
}
