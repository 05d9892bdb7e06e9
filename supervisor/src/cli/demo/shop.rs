//! The data of the example server of `lockhouse demo`: a shop's customers, orders and support tickets, from
//! `shop.json`.
//!
//! The data contains a problem to find: in the autumn, many orders to Spain and Italy are late, and customers
//! complain in tickets. To find the problem, a program must combine several lists.
//!
//! Each row of `shop.json` is an array with the field values of one of the structs in this file, in the order of its
//! fields.

use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
pub(super) struct Customer {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) country: String,
    pub(super) tier: String,
    pub(super) email: String,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Item {
    pub(super) sku: String,
    pub(super) name: String,
    pub(super) quantity: u32,
    pub(super) unit_price: f64,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Order {
    pub(super) id: String,
    pub(super) customer_id: String,
    pub(super) date: String,
    pub(super) items: Vec<Item>,
    pub(super) total: f64,
    pub(super) currency: String,
    pub(super) status: String,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Ticket {
    pub(super) id: String,
    pub(super) customer_id: String,
    pub(super) order_id: Option<String>,
    pub(super) opened: String,
    pub(super) priority: String,
    pub(super) subject: String,
    pub(super) body: String,
    pub(super) status: String,
    /// Notes that were added to the ticket while this process runs. `shop.json` contains none.
    #[serde(default)]
    pub(super) notes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shop {
    pub(super) customers: Vec<Customer>,
    pub(super) orders: Vec<Order>,
    pub(super) tickets: Vec<Ticket>,
}

impl Shop {
    /// Loads about 400 customers, 3,000 orders and 900 tickets from the embedded data. Each list is sorted by id.
    pub(super) fn load() -> serde_json::Result<Self> {
        serde_json::from_str(include_str!("shop.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_read_and_leads_to_rows_that_exist() {
        let shop = Shop::load().expect("the file");
        assert!(shop.customers.is_sorted_by(|one, other| one.id < other.id));
        assert!(shop.orders.is_sorted_by(|one, other| one.id < other.id && one.date <= other.date));
        assert!(shop.tickets.is_sorted_by(|one, other| one.id < other.id && one.opened <= other.opened));
        let has_customer = |id: &str| shop.customers.iter().any(|customer| customer.id == id);
        assert!(shop.orders.iter().all(|order| has_customer(&order.customer_id) && !order.items.is_empty()));
        let has_order = |id: &str| shop.orders.iter().any(|order| order.id == id);
        let is_of_both = |ticket: &Ticket| {
            has_customer(&ticket.customer_id) && ticket.order_id.as_deref().is_none_or(has_order)
        };
        assert!(shop.tickets.iter().all(is_of_both));
    }
}
