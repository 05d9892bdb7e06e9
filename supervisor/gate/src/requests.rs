//! Requests of workers, each with its one reply.

use lockhouse_policies::Item;
use lockhouse_protocol::{CallId, Failure, FailureCode, Reply, Request};
use serde_json::json;

use super::arguments::Given;
use super::asked::{Asked, CallRecord};
use super::failures::{cut, failure};
use super::search::Search;
use super::{Gate, Requester};

impl Gate {
    /// Answers one request of a worker, for which that is `asked` of a server. A record comes back for what goes upstream alone.
    pub async fn answer(
        &self,
        from: &Requester,
        call: CallId,
        asked: Option<Asked>,
        request: Request,
    ) -> (Reply, Option<CallRecord>) {
        if let Some(asked) = asked {
            let asked = self.meant(from, asked);
            let (reply, record) = self.call(from, call, &asked, Given::of(request)).await;
            return (self.bounded(reply), Some(record));
        }
        let reply = match request {
            Request::ListTools { server } => self.list_tools(from, &server).await,
            Request::Describe { server, tool } => self.describe(from, call, &server, &tool).await,
            Request::LoadResult { handle } => match self.results.get(from.principal.owner(), &handle) {
                Ok(json) => Ok(json.as_bytes().to_vec()),
                Err(not_kept) => Err(failure(FailureCode::NotFound, not_kept.to_string())),
            },
            Request::LoadSkill { name } => self.load_skill(from, &name).await,
            Request::SearchSkills { query, limit } => self.search_skills(from, query, limit).await,
            Request::Search { query, limit, detail } => {
                let search = Search { query: &query, limit, detail, language: from.language };
                let found = self.search(&from.scope, from.client(), search).await;
                Ok(json!({"tools": found.tools, "missing": found.missing}).to_string().into_bytes())
            }
            _ => self.list_servers(from),
        };
        (self.bounded(reply), None)
    }

    /// The same of the tool that is meant, where its name was written in another form. What is not permitted is found by its
    /// own name alone.
    fn meant(&self, from: &Requester, asked: Asked) -> Asked {
        match &asked.item {
            Item::Tool(tool) => match self.tool_meant(from, &asked.server, tool) {
                Some(meant) => asked.about(Item::Tool(meant)),
                None => asked,
            },
            _ => asked,
        }
    }

    fn bounded(&self, reply: Reply) -> Reply {
        match reply {
            Err(failure) => Err(Failure { message: cut(&failure.message), ..failure }),
            Ok(json) if json.len() > self.reply_bytes_max => Err(failure(
                FailureCode::ResultTooLarge,
                format!(
                    "the result has {} bytes, the limit is {}; ask for less at a time",
                    json.len(),
                    self.reply_bytes_max
                ),
            )),
            reply => reply,
        }
    }
}
