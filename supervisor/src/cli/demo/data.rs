//! The stock of the demonstration: a shop's customers, orders and support tickets.
//!
//! The same on every run: there is neither a clock nor a source of randomness, so what the
//! documentation shows is what people see. There is something to find in it, too: in the autumn
//! a carrier fails Spain and Italy, and the tickets about it are spread over two lists.

mod wording;

use serde::Serialize;

use wording::Topic;

pub(super) const COUNTRIES: [&str; 9] = ["DE", "ES", "FR", "GB", "IT", "NL", "PL", "SE", "US"];
pub(super) const TIERS: [&str; 3] = ["standard", "plus", "enterprise"];
pub(super) const ORDER_STATUSES: [&str; 7] =
    ["processing", "shipped", "delivered", "late", "returned", "cancelled", "refunded"];
pub(super) const PRIORITIES: [&str; 4] = ["low", "normal", "high", "urgent"];
pub(super) const TICKET_STATUSES: [&str; 3] = ["open", "pending", "solved"];

const CUSTOMER_COUNT: usize = 400;
const ORDER_COUNT: usize = 3_000;
/// The last day on record, counted from 1 January: 20 November 2026.
const LAST_DAY: usize = 323;
/// 1 September 2026, when the trouble with the carrier begins.
const AUTUMN: usize = 243;

#[derive(Serialize)]
pub(super) struct Customer {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) country: &'static str,
    pub(super) tier: &'static str,
    pub(super) email: String,
}

#[derive(Serialize)]
pub(super) struct Item {
    pub(super) sku: &'static str,
    pub(super) name: &'static str,
    pub(super) quantity: usize,
    pub(super) unit_price: f64,
}

#[derive(Serialize)]
pub(super) struct Order {
    pub(super) id: String,
    pub(super) customer_id: String,
    pub(super) date: String,
    pub(super) items: Vec<Item>,
    pub(super) total: f64,
    pub(super) currency: &'static str,
    pub(super) status: &'static str,
}

#[derive(Serialize)]
pub(super) struct Ticket {
    pub(super) id: String,
    pub(super) customer_id: String,
    pub(super) order_id: Option<String>,
    pub(super) opened: String,
    pub(super) priority: &'static str,
    pub(super) subject: String,
    pub(super) body: String,
    pub(super) status: &'static str,
    pub(super) notes: Vec<String>,
}

pub(super) struct Shop {
    pub(super) customers: Vec<Customer>,
    pub(super) orders: Vec<Order>,
    pub(super) tickets: Vec<Ticket>,
}

impl Shop {
    /// About 400 customers, 3,000 orders and 800 tickets, each list in the order of its ids.
    pub(super) fn stocked() -> Self {
        let mut dice = Dice(2026);
        let customers: Vec<_> = (1..=CUSTOMER_COUNT).map(|number| customer(number, &mut dice)).collect();
        let mut orders = Vec::with_capacity(ORDER_COUNT);
        let mut complaints = Vec::new();
        for number in 0..ORDER_COUNT {
            let day = number * (LAST_DAY + 1) / ORDER_COUNT;
            let buyer = dice.below(CUSTOMER_COUNT);
            let order = order(number, day, &customers[buyer], &mut dice);
            let topics = wording::topics_of(order.status, &mut dice);
            complaints.extend(
                topics.into_iter().map(|topic| Complaint::about_order(day, number, buyer, topic, &mut dice)),
            );
            orders.push(order);
        }
        for _ in 0..180 {
            complaints.push(Complaint {
                day: dice.below(LAST_DAY + 1),
                order: None,
                customer: dice.below(CUSTOMER_COUNT),
                topic: dice.pick(&[Topic::Account, Topic::Invoice]),
            });
        }
        complaints.sort_by_key(|complaint| complaint.day);
        let tickets = (1..)
            .zip(&complaints)
            .map(|(number, complaint)| complaint.ticket(number, &customers, &orders, &mut dice))
            .collect();
        Self { customers, orders, tickets }
    }
}

/// A ticket before it has a number: tickets are numbered by the day on which they were opened.
struct Complaint {
    day: usize,
    customer: usize,
    order: Option<usize>,
    topic: Topic,
}

impl Complaint {
    fn about_order(ordered: usize, order: usize, customer: usize, topic: Topic, dice: &mut Dice) -> Self {
        let patience = if topic == Topic::Late { 8 + dice.below(12) } else { 2 + dice.below(9) };
        Self { day: (ordered + patience).min(LAST_DAY), customer, order: Some(order), topic }
    }

    fn ticket(&self, number: usize, customers: &[Customer], orders: &[Order], dice: &mut Dice) -> Ticket {
        let customer = &customers[self.customer];
        let order = self.order.map(|order| &orders[order]);
        let (subject, body) = wording::ticket(self.topic, order, dice);
        let urgency = usize::from(self.topic == Topic::Late) + usize::from(customer.tier == "enterprise");
        let status = match LAST_DAY - self.day {
            0..=12 => dice.pick(&["open", "open", "pending"]),
            13..=40 => dice.pick(&["open", "pending", "solved", "solved"]),
            _ => dice.pick(&["solved", "solved", "solved", "solved", "solved", "solved", "pending"]),
        };
        Ticket {
            id: format!("T-{number:04}"),
            customer_id: customer.id.clone(),
            order_id: order.map(|order| order.id.clone()),
            opened: date(self.day),
            priority: PRIORITIES[(urgency + dice.below(2)).min(PRIORITIES.len() - 1)],
            subject,
            body,
            status,
            notes: Vec::new(),
        }
    }
}

fn customer(number: usize, dice: &mut Dice) -> Customer {
    let country =
        dice.pick(&["DE", "DE", "DE", "ES", "ES", "FR", "FR", "GB", "IT", "IT", "NL", "PL", "SE", "US"]);
    let name = wording::name(country, dice);
    let email = format!("{}.{number}@example.com", wording::ascii(&name));
    let tier = match dice.below(100) {
        0..60 => TIERS[0],
        60..88 => TIERS[1],
        _ => TIERS[2],
    };
    Customer { id: format!("C-{number:04}"), name, country, tier, email }
}

fn order(number: usize, day: usize, customer: &Customer, dice: &mut Dice) -> Order {
    let (currency, rate) = match customer.country {
        "GB" => ("GBP", 0.86),
        "PL" => ("PLN", 4.3),
        "SE" => ("SEK", 11.2),
        "US" => ("USD", 1.1),
        _ => ("EUR", 1.0),
    };
    let kinds = 1 + dice.below(3);
    let items: Vec<_> = (0..kinds)
        .map(|_| {
            let (sku, name, euros) = dice.pick(&wording::PRODUCTS);
            let bulk = if customer.tier == "enterprise" { 6 } else { 1 };
            Item { sku, name, quantity: 1 + dice.below(2 * bulk), unit_price: cents(euros * rate) }
        })
        .collect();
    Order {
        id: format!("O-{}", 10_001 + number),
        customer_id: customer.id.clone(),
        date: date(day),
        total: cents(items.iter().map(|item| item.unit_price * item.quantity as f64).sum()),
        items,
        currency,
        status: order_status(day, customer.country, dice),
    }
}

fn order_status(day: usize, country: &str, dice: &mut Dice) -> &'static str {
    let late_percent = match country {
        "ES" | "IT" if day >= AUTUMN => 38,
        _ if day >= AUTUMN => 5,
        _ => 1,
    };
    match LAST_DAY - day {
        0..=2 => "processing",
        3..=6 => "shipped",
        _ if dice.below(100) < late_percent => "late",
        _ => match dice.below(100) {
            0..4 => "returned",
            4..7 => "cancelled",
            7..9 => "refunded",
            _ => "delivered",
        },
    }
}

fn cents(amount: f64) -> f64 {
    (amount * 100.0).round() / 100.0
}

/// The date of a day of 2026, counted from 0 on 1 January.
fn date(mut day: usize) -> String {
    let mut month = 1;
    for length in [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("2026-{month:02}-{:02}", day + 1)
}

/// A linear congruential generator with the multiplier and increment of Knuth's MMIX.
struct Dice(u64);

impl Dice {
    /// A number below `sides`, from the high bits: the low ones of such a generator repeat early.
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
