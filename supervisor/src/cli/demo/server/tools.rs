//! The tools of the back office, as they are described to AI clients.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::cli::demo::data::{COUNTRIES, ORDER_STATUSES, PRIORITIES, TICKET_STATUSES, TIERS};

/// The most entries that one call returns; the lists are longer, so that there is something to page through.
const PAGE_MAX: u64 = 500;
/// The longest note or reason, in characters.
const TEXT_MAX_CHARS: u64 = 2_000;

/// The tools in the order in which they are listed.
pub(super) fn list() -> Vec<Tool> {
    vec![
        reading(
            "list_customers",
            "Lists customers, ordered by id. Returns {customers, total, next_offset}.",
            paged(json!({
                "country": choice("Only customers in this country.", &COUNTRIES),
                "tier": choice("Only customers of this tier.", &TIERS),
            })),
            &[],
        ),
        reading(
            "get_customer",
            "Returns one customer: {id, name, country, tier, email}.",
            json!({ "id": text("Id of the customer, such as C-0042.") }),
            &["id"],
        ),
        reading(
            "list_orders",
            "Lists orders, the oldest first. Returns {orders, total, next_offset}.",
            paged(json!({
                "customer_id": text("Only orders of this customer, such as C-0042."),
                "status": choice("Only orders in this state.", &ORDER_STATUSES),
                "from": date("Only orders of this day or later."),
                "to": date("Only orders of this day or earlier."),
            })),
            &[],
        ),
        reading(
            "get_order",
            "Returns one order: {id, customer_id, date, items, total, currency, status}.",
            json!({ "id": text("Id of the order, such as O-10042.") }),
            &["id"],
        ),
        reading(
            "list_tickets",
            "Lists support tickets, the oldest first. Returns {tickets, total, next_offset}.",
            paged(json!({
                "status": choice("Only tickets in this state.", &TICKET_STATUSES),
                "priority": choice("Only tickets of this priority.", &PRIORITIES),
                "customer_id": text("Only tickets of this customer, such as C-0042."),
            })),
            &[],
        ),
        reading(
            "get_ticket",
            "Returns one ticket: {id, customer_id, order_id, opened, priority, subject, body, status, notes}.",
            json!({ "id": text("Id of the ticket, such as T-0042.") }),
            &["id"],
        ),
        reading(
            "search_tickets",
            "Finds the tickets whose subject, body or notes contain every word of the query, the newest first. Returns {tickets, total}.",
            json!({
                "query": text("Words to look for, in any order; case does not matter."),
                "limit": whole("The most tickets to return.", 20, 1, 100),
            }),
            &["query"],
        ),
        changing(
            "add_ticket_note",
            "Adds an internal note to a ticket; the customer does not see it. Returns {ticket}.",
            json!({
                "ticket_id": text("Id of the ticket, such as T-0042."),
                "note": short_text("The note."),
            }),
            &["ticket_id", "note"],
            false,
        ),
        changing(
            "refund_order",
            "Refunds the full amount of an order to the customer. This cannot be undone. Returns {order, refunded}.",
            json!({
                "order_id": text("Id of the order, such as O-10042."),
                "reason": short_text("Why the money is returned; it is shown to the customer."),
            }),
            &["order_id", "reason"],
            true,
        ),
    ]
}

fn reading(name: &'static str, description: &'static str, properties: Value, required: &[&str]) -> Tool {
    tool(name, description, properties, required)
        .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
}

fn changing(
    name: &'static str,
    description: &'static str,
    properties: Value,
    required: &[&str],
    destructive: bool,
) -> Tool {
    let annotations = ToolAnnotations::new().read_only(false).destructive(destructive).open_world(false);
    tool(name, description, properties, required).with_annotations(annotations.idempotent(false))
}

fn tool(name: &'static str, description: &'static str, properties: Value, required: &[&str]) -> Tool {
    let mut schema = JsonObject::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), properties);
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema.insert("additionalProperties".into(), json!(false));
    Tool::new(name, description, schema)
}

fn paged(mut filters: Value) -> Value {
    filters["offset"] = json!({
        "type": "integer", "minimum": 0, "default": 0,
        "description": "How many entries to skip: next_offset of the page before.",
    });
    filters["limit"] = whole("The most entries to return.", 100, 1, PAGE_MAX);
    filters
}

fn whole(description: &str, default: u64, minimum: u64, maximum: u64) -> Value {
    json!({
        "type": "integer", "minimum": minimum, "maximum": maximum, "default": default, "description": description,
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn short_text(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": TEXT_MAX_CHARS, "description": description })
}

fn choice(description: &str, choices: &[&str]) -> Value {
    json!({ "type": "string", "enum": choices, "description": description })
}

fn date(description: &str) -> Value {
    json!({ "type": "string", "format": "date", "description": format!("{description} YYYY-MM-DD.") })
}
