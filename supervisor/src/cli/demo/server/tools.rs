//! The tools of the example server of `lockhouse demo`. The tools expect arguments that [`super::arguments`] has
//! validated.

use rmcp::model::JsonObject;
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::cli::demo::shop::{Order, Shop, Ticket};

/// The maximum number of notes per ticket, so that the data of a long-running demo does not grow without bound.
const NOTES_MAX: usize = 50;

#[derive(Debug, Error)]
pub(super) enum ToolError {
    #[error("there is no {what} {id}; {list} returns those that exist")]
    NotFound { what: &'static str, id: String, list: &'static str },
    #[error("order {id} has been refunded already")]
    AlreadyRefunded { id: String },
    #[error("order {id} is {status}; only orders that are late, delivered or returned can be refunded")]
    NotRefundable { id: String, status: String },
    #[error("ticket {id} has {NOTES_MAX} notes and takes no more")]
    TooManyNotes { id: String },
    #[error("`query` contains no words to look for")]
    EmptyQuery,
    #[error("the tool {0} is listed but not implemented")]
    NotImplemented(String),
}

/// Runs a tool of the example server with validated arguments and returns its result.
pub(super) fn call(shop: &mut Shop, tool: &str, arguments: &JsonObject) -> Result<Value, ToolError> {
    let id = text(arguments, "id").unwrap_or_default();
    match tool {
        "list_customers" => Ok(page(
            "customers",
            arguments,
            shop.customers.iter().filter(|customer| {
                matches(arguments, "country", &customer.country) && matches(arguments, "tier", &customer.tier)
            }),
        )),
        "get_customer" => {
            let customer = shop.customers.iter().find(|customer| customer.id == id);
            Ok(json!(customer.ok_or_else(|| not_found("customer", id, "list_customers"))?))
        }
        "list_orders" => Ok(page(
            "orders",
            arguments,
            shop.orders.iter().filter(|order| {
                matches(arguments, "customer_id", &order.customer_id)
                    && matches(arguments, "status", &order.status)
                    && text(arguments, "from").is_none_or(|from| order.date.as_str() >= from)
                    && text(arguments, "to").is_none_or(|to| order.date.as_str() <= to)
            }),
        )),
        "get_order" => Ok(json!(order(shop, id)?)),
        "list_tickets" => Ok(page(
            "tickets",
            arguments,
            shop.tickets.iter().filter(|ticket| {
                matches(arguments, "status", &ticket.status)
                    && matches(arguments, "priority", &ticket.priority)
                    && matches(arguments, "customer_id", &ticket.customer_id)
            }),
        )),
        "get_ticket" => Ok(json!(ticket(shop, id)?)),
        "search_tickets" => search(shop, arguments),
        "add_ticket_note" => add_note(shop, arguments),
        "refund_order" => refund(shop, arguments),
        _ => Err(ToolError::NotImplemented(tool.into())),
    }
}

/// Returns one page of the items in `found`, by the arguments `offset` and `limit` of the call. The result holds the
/// items under the key `name`, the number of all items, and `next_offset`, which is null on the last page.
fn page<'a, T: Serialize + 'a>(
    name: &str,
    arguments: &JsonObject,
    found: impl Iterator<Item = &'a T>,
) -> Value {
    let found: Vec<_> = found.collect();
    let (offset, limit) = (number(arguments, "offset"), number(arguments, "limit"));
    let returned: Vec<_> = found.iter().skip(offset).take(limit).collect();
    let next = offset.saturating_add(returned.len());
    let next_offset = (next < found.len()).then_some(next);
    json!({ name: returned, "total": found.len(), "next_offset": next_offset })
}

fn search(shop: &Shop, arguments: &JsonObject) -> Result<Value, ToolError> {
    let query = text(arguments, "query").unwrap_or_default().to_lowercase();
    let words: Vec<_> = query.split_whitespace().collect();
    if words.is_empty() {
        return Err(ToolError::EmptyQuery);
    }
    let found = shop.tickets.iter().rev().filter(|ticket| {
        let written = format!("{} {} {}", ticket.subject, ticket.body, ticket.notes.join(" ")).to_lowercase();
        words.iter().all(|word| written.contains(word))
    });
    let found: Vec<_> = found.collect();
    let returned: Vec<_> = found.iter().take(number(arguments, "limit")).collect();
    Ok(json!({ "tickets": returned, "total": found.len() }))
}

fn add_note(shop: &mut Shop, arguments: &JsonObject) -> Result<Value, ToolError> {
    let ticket = ticket(shop, text(arguments, "ticket_id").unwrap_or_default())?;
    if ticket.notes.len() >= NOTES_MAX {
        return Err(ToolError::TooManyNotes { id: ticket.id.clone() });
    }
    ticket.notes.extend(text(arguments, "note").map(str::to_owned));
    Ok(json!({ "ticket": ticket }))
}

/// Marks an order as refunded. The result repeats the reason for the refund; a real shop would send it to the customer.
fn refund(shop: &mut Shop, arguments: &JsonObject) -> Result<Value, ToolError> {
    let order = order(shop, text(arguments, "order_id").unwrap_or_default())?;
    match order.status.as_str() {
        "late" | "delivered" | "returned" => order.status = "refunded".into(),
        "refunded" => return Err(ToolError::AlreadyRefunded { id: order.id.clone() }),
        status => return Err(ToolError::NotRefundable { id: order.id.clone(), status: status.into() }),
    }
    let refunded =
        json!({ "amount": order.total, "currency": order.currency, "reason": arguments["reason"] });
    Ok(json!({ "order": order, "refunded": refunded }))
}

fn order<'a>(shop: &'a mut Shop, id: &str) -> Result<&'a mut Order, ToolError> {
    shop.orders.iter_mut().find(|order| order.id == id).ok_or_else(|| not_found("order", id, "list_orders"))
}

fn ticket<'a>(shop: &'a mut Shop, id: &str) -> Result<&'a mut Ticket, ToolError> {
    shop.tickets
        .iter_mut()
        .find(|ticket| ticket.id == id)
        .ok_or_else(|| not_found("ticket", id, "list_tickets"))
}

fn not_found(what: &'static str, id: &str, list: &'static str) -> ToolError {
    ToolError::NotFound { what, id: id.into(), list }
}

/// Whether a list item matches a filter: `value` is a field of the item, and `name` is the argument of the call that
/// must equal it. An omitted argument matches every value.
fn matches(arguments: &JsonObject, name: &str, value: &str) -> bool {
    text(arguments, name).is_none_or(|wanted| wanted == value)
}

fn text<'a>(arguments: &'a JsonObject, name: &str) -> Option<&'a str> {
    arguments.get(name)?.as_str()
}

fn number(arguments: &JsonObject, name: &str) -> usize {
    arguments
        .get(name)
        .and_then(Value::as_u64)
        .map_or(0, |number| usize::try_from(number).unwrap_or(usize::MAX))
}
