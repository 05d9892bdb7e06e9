//! The example upstream server of `lockhouse demo`: the back office of a shop, as an MCP server over standard input and
//! output.
//!
//! Its tools let a user try Lockhouse's features without a server of their own: lists that are too large for a model's
//! context, searches, a harmless change, and a change for which a policy should require approval.

mod arguments;
mod tools;

use parking_lot::Mutex;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};

use super::shop::Shop;

struct BackOffice {
    tools: Vec<Tool>,
    /// The data of the shop. Changes are kept in memory only: every start of the server begins with the original data.
    shop: Mutex<Shop>,
}

impl ServerHandler for BackOffice {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("lockhouse-demo", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "The back office of an invented shop: customers, orders and support tickets of 2026.",
            )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == request.name) else {
            return Err(ErrorData::invalid_params(format!("unknown tool {}", request.name), None));
        };
        let arguments = match arguments::validate(tool, request.arguments.unwrap_or_default()) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(failure(&error).into()),
        };
        let mut shop = self.shop.lock();
        let result = match tools::call(&mut shop, &tool.name, &arguments) {
            Ok(answer) => CallToolResult::structured(answer),
            Err(refusal) => failure(&refusal),
        };
        Ok(result.into())
    }
}

/// Returns a failed tool result with the message of `error`, which tells the model what to do.
fn failure(error: &dyn std::error::Error) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.to_string())])
}

/// Serves the example server over standard input and output until the MCP client closes the connection.
pub(crate) async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let tools = serde_json::from_str(include_str!("server/tools.json"))?;
    let back_office = BackOffice { tools, shop: Mutex::new(Shop::load()?) };
    match back_office.serve(rmcp::transport::stdio_pipes()).await {
        Ok(running) => {
            running.waiting().await?;
            Ok(())
        }
        // A peer that disconnects before the handshake is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
