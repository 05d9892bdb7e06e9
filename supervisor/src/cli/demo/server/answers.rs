//! What the back office answers, once the arguments are known to be good.

use rmcp::model::JsonObject;
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::cli::demo::data::{Order, Shop, Ticket};

/// A demonstration that runs for days must not grow without end.
const NOTES_MAX: usize = 50;

#[derive(Debug, Error)]
pub(super) enum Refusal {
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
    #[error("the tool {0} is announced but not made")]
    NotMade(String),
}

/// The result of a tool whose arguments have been checked.
pub(super) fn answer(shop: &mut Shop, tool: &str, given: &JsonObject) -> Result<Value, Refusal> {
    let id = text(given, "id").unwrap_or_default();
    match tool {
        "list_customers" => Ok(page(
            "customers",
            given,
            shop.customers.iter().filter(|customer| {
                matches(given, "country", &customer.country) && matches(given, "tier", &customer.tier)
            }),
        )),
        "get_customer" => {
            let customer = shop.customers.iter().find(|customer| customer.id == id);
            Ok(json!(customer.ok_or_else(|| not_found("customer", id, "list_customers"))?))
        }
        "list_orders" => Ok(page(
            "orders",
            given,
            shop.orders.iter().filter(|order| {
                matches(given, "customer_id", &order.customer_id)
                    && matches(given, "status", &order.status)
                    && text(given, "from").is_none_or(|from| order.date.as_str() >= from)
                    && text(given, "to").is_none_or(|to| order.date.as_str() <= to)
            }),
        )),
        "get_order" => Ok(json!(order(shop, id)?)),
        "list_tickets" => Ok(page(
            "tickets",
            given,
            shop.tickets.iter().filter(|ticket| {
                matches(given, "status", &ticket.status)
                    && matches(given, "priority", &ticket.priority)
                    && matches(given, "customer_id", &ticket.customer_id)
            }),
        )),
        "get_ticket" => Ok(json!(ticket(shop, id)?)),
        "search_tickets" => search(shop, given),
        "add_ticket_note" => add_note(shop, given),
        "refund_order" => refund(shop, given),
        _ => Err(Refusal::NotMade(tool.into())),
    }
}

/// `next_offset` is null on the last page.
fn page<'a, T: Serialize + 'a>(name: &str, given: &JsonObject, found: impl Iterator<Item = &'a T>) -> Value {
    let found: Vec<_> = found.collect();
    let (offset, limit) = (number(given, "offset"), number(given, "limit"));
    let shown: Vec<_> = found.iter().skip(offset).take(limit).collect();
    let next = offset.saturating_add(shown.len());
    let next_offset = (next < found.len()).then_some(next);
    json!({ name: shown, "total": found.len(), "next_offset": next_offset })
}

fn search(shop: &Shop, given: &JsonObject) -> Result<Value, Refusal> {
    let query = text(given, "query").unwrap_or_default().to_lowercase();
    let words: Vec<_> = query.split_whitespace().collect();
    if words.is_empty() {
        return Err(Refusal::EmptyQuery);
    }
    let found = shop.tickets.iter().rev().filter(|ticket| {
        let written = format!("{} {} {}", ticket.subject, ticket.body, ticket.notes.join(" ")).to_lowercase();
        words.iter().all(|word| written.contains(word))
    });
    let found: Vec<_> = found.collect();
    let shown: Vec<_> = found.iter().take(number(given, "limit")).collect();
    Ok(json!({ "tickets": shown, "total": found.len() }))
}

fn add_note(shop: &mut Shop, given: &JsonObject) -> Result<Value, Refusal> {
    let ticket = ticket(shop, text(given, "ticket_id").unwrap_or_default())?;
    if ticket.notes.len() >= NOTES_MAX {
        return Err(Refusal::TooManyNotes { id: ticket.id.clone() });
    }
    ticket.notes.extend(text(given, "note").map(str::to_owned));
    Ok(json!({ "ticket": ticket }))
}

/// The reason belongs in a letter to the customer, which nobody writes here.
fn refund(shop: &mut Shop, given: &JsonObject) -> Result<Value, Refusal> {
    let order = order(shop, text(given, "order_id").unwrap_or_default())?;
    match order.status.as_str() {
        "late" | "delivered" | "returned" => order.status = "refunded".into(),
        "refunded" => return Err(Refusal::AlreadyRefunded { id: order.id.clone() }),
        status => return Err(Refusal::NotRefundable { id: order.id.clone(), status: status.into() }),
    }
    let refunded = json!({ "amount": order.total, "currency": order.currency, "reason": given["reason"] });
    Ok(json!({ "order": order, "refunded": refunded }))
}

fn order<'a>(shop: &'a mut Shop, id: &str) -> Result<&'a mut Order, Refusal> {
    shop.orders.iter_mut().find(|order| order.id == id).ok_or_else(|| not_found("order", id, "list_orders"))
}

fn ticket<'a>(shop: &'a mut Shop, id: &str) -> Result<&'a mut Ticket, Refusal> {
    shop.tickets
        .iter_mut()
        .find(|ticket| ticket.id == id)
        .ok_or_else(|| not_found("ticket", id, "list_tickets"))
}

fn not_found(what: &'static str, id: &str, list: &'static str) -> Refusal {
    Refusal::NotFound { what, id: id.into(), list }
}

/// A filter that was not given lets everything through.
fn matches(given: &JsonObject, name: &str, value: &str) -> bool {
    text(given, name).is_none_or(|wanted| wanted == value)
}

fn text<'a>(given: &'a JsonObject, name: &str) -> Option<&'a str> {
    given.get(name)?.as_str()
}

fn number(given: &JsonObject, name: &str) -> usize {
    given.get(name).and_then(Value::as_u64).map_or(0, |number| usize::try_from(number).unwrap_or(usize::MAX))
}
