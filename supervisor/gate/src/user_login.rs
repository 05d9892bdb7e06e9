//! The login of a user to a server whose calls use credentials of each user: the call waits for it, as for an approval.

use std::time::Duration;

use lockhouse_messages::{Answer, Owner, Question, QuestionKind};
use lockhouse_policies::CallTarget;
use lockhouse_protocol::{Failure, FailureCode, ServerName};
use lockhouse_upstream::LOGIN_TIMEOUT;
use tokio::time::{Instant, sleep};

use super::destination::Destination;
use super::{Gate, RunContext};

/// How often a waiting call looks whether the user has logged in, maybe in another process.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Gate {
    /// Returns the destination of calls of this run: of a server whose owners have connections of their own, that of the run's owner.
    /// If the user must log in first, asks them to do so, and waits.
    pub(super) async fn own_destination(
        &self,
        run: &RunContext,
        destination: Destination,
    ) -> Result<Destination, Failure> {
        let Destination::Upstream(connection) = destination else { return Ok(destination) };
        let owner = run.principal().owner();
        match self.upstreams.for_owner(&connection, owner) {
            Err(failure) if failure.code == FailureCode::LoginRequired => {
                self.wait_for_login(run, connection.name(), owner, failure).await?;
            }
            own => return own.map(Destination::Upstream),
        }
        self.upstreams.for_owner(&connection, owner).map(Destination::Upstream)
    }

    /// Returns the destination with which a run makes a permitted call, if each run has tokens of its own for the server.
    pub(super) fn run_destination(
        &self,
        run: &RunContext,
        destination: Destination,
        item: &CallTarget,
    ) -> Result<Destination, Failure> {
        let Destination::Upstream(connection) = destination else { return Ok(destination) };
        let own = self.upstreams.for_run(&connection, run.principal().owner(), &run.connections, item);
        own.map(Destination::Upstream)
    }

    /// Asks the user to log in, and waits until they have. Fails with `required` if nobody can be asked, or the user does not log in.
    async fn wait_for_login(
        &self,
        run: &RunContext,
        server: &ServerName,
        owner: Owner,
        required: Failure,
    ) -> Result<(), Failure> {
        let page = self.upstreams.login_page(server);
        let Some(page) = page.filter(|_| run.channel.supports(QuestionKind::Url)) else {
            return Err(required);
        };
        let question = Question::Url {
            message: format!(
                "A program calls the server {server} for you. Log in to it with your own account first."
            ),
            url: page,
            id: format!("login-{server}"),
        };
        let deadline = Instant::now() + LOGIN_TIMEOUT;
        if !matches!(run.channel.ask(server, question).await, Ok(Answer::Accept(_))) {
            return Err(required);
        }
        let _pauses_the_run = run.channel.questions().open(format!("the login to server {server}"));
        while Instant::now() < deadline {
            if self.upstreams.has_credential(server, owner) {
                return Ok(());
            }
            sleep(LOOK_EVERY).await;
        }
        Err(required)
    }
}
