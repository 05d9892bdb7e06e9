//! The words of the demonstration: names, products, and what customers write when they complain.

use super::{Dice, Order};

/// Stock keeping unit, name and price in euros.
pub(super) const PRODUCTS: [(&str, &str, f64); 14] = [
    ("KB-100", "Mechanical keyboard", 89.90),
    ("KB-210", "Compact keyboard", 64.50),
    ("MS-310", "Vertical mouse", 49.90),
    ("MS-320", "Travel mouse", 24.90),
    ("MN-270", "27-inch monitor", 279.00),
    ("MN-340", "34-inch curved monitor", 549.00),
    ("DK-050", "USB-C dock", 139.00),
    ("CB-020", "Braided USB-C cable, 2 m", 14.90),
    ("HS-400", "Noise-cancelling headset", 189.00),
    ("WC-080", "4K webcam", 119.00),
    ("LS-010", "Laptop stand", 39.90),
    ("LP-060", "Desk lamp", 54.90),
    ("CH-900", "Office chair", 329.00),
    ("DS-160", "Standing desk, 160 cm", 489.00),
];

/// What a ticket is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    Late,
    Damaged,
    WrongItem,
    Return,
    Question,
    Invoice,
    Account,
}

/// The tickets that an order in this state leads to: most late orders lead to one or more, few others do.
pub(super) fn topics_of(status: &str, dice: &mut Dice) -> Vec<Topic> {
    match (status, dice.below(100)) {
        ("late", 0..10) => vec![],
        ("late", 10..45) => vec![Topic::Late],
        ("late", 45..80) => vec![Topic::Late, Topic::Late],
        ("late", _) => vec![Topic::Late, Topic::Late, Topic::Late],
        ("returned" | "refunded", 0..65) => {
            vec![dice.pick(&[Topic::Damaged, Topic::WrongItem, Topic::Return])]
        }
        ("delivered", 0..13) => {
            vec![dice.pick(&[
                Topic::Damaged,
                Topic::WrongItem,
                Topic::Question,
                Topic::Question,
                Topic::Invoice,
            ])]
        }
        ("processing" | "shipped", 0..6) => vec![Topic::Question],
        _ => vec![],
    }
}

/// Subject and body; `{order}` and `{item}` stand for the order's number and its first item.
pub(super) fn ticket(topic: Topic, order: Option<&Order>, dice: &mut Dice) -> (String, String) {
    let (subjects, openings, details): (&[&str], &[&str], &[&str]) = match topic {
        Topic::Late => (
            &[
                "Where is my order {order}?",
                "Order {order} has not arrived",
                "{item} still missing",
                "Delivery overdue: {order}",
            ],
            &[
                "I am still waiting for order {order}.",
                "My {item} should have been here last week.",
                "Order {order} is overdue.",
            ],
            &[
                "Tracking has not moved for nine days.",
                "The carrier says that the parcel never reached its depot.",
                "The delivery date was changed three times without notice.",
                "The hotline of the carrier does not answer.",
            ],
        ),
        Topic::Damaged => (
            &["{item} arrived damaged", "Broken on arrival: {item}", "Damaged parcel, order {order}"],
            &[
                "The {item} from order {order} arrived damaged.",
                "We opened order {order} today and the {item} is broken.",
            ],
            &[
                "One corner of the box was crushed.",
                "There is a crack along the edge.",
                "It does not switch on at all.",
                "I can send photographs.",
            ],
        ),
        Topic::WrongItem => (
            &["Wrong item in order {order}", "I ordered a {item} and received something else"],
            &[
                "Order {order} does not contain what I ordered.",
                "Instead of the {item} I found another product in the box.",
            ],
            &[
                "The packing slip is correct, the content is not.",
                "The label on the bag shows another article number.",
                "I have not used it.",
            ],
        ),
        Topic::Return => (
            &["Return of {item}", "Refund for order {order}?"],
            &["I sent back the {item} from order {order}.", "My return for order {order} was confirmed."],
            &[
                "The money has not reached my account.",
                "Could you confirm that it arrived?",
                "The return label was scanned two weeks ago.",
            ],
        ),
        Topic::Question => (
            &["Question about {item}", "{item}: compatibility", "Can I change order {order}?"],
            &[
                "A short question about the {item} in order {order}.",
                "I have a question before I unpack the {item}.",
            ],
            &[
                "Does it work with a 2023 laptop?",
                "Is there a printed manual?",
                "How long is the warranty?",
                "Can I add a second one at the same price?",
            ],
        ),
        Topic::Invoice => (
            &["Invoice needs our VAT number", "Copy of an invoice", "Wrong billing address"],
            &[
                "Our accounting department needs a corrected invoice.",
                "I cannot find the invoice for last month.",
            ],
            &[
                "The VAT number is missing.",
                "The address is that of our old office.",
                "Please send it as a PDF.",
                "The deadline is on Friday.",
            ],
        ),
        Topic::Account => (
            &["Cannot sign in", "Change of e-mail address", "Please delete an old address"],
            &["I cannot get into my account.", "Something in my account needs to be changed."],
            &[
                "The link for a new password has expired.",
                "I no longer use that address.",
                "The confirmation never arrived.",
                "Two-factor codes are refused.",
            ],
        ),
    };
    let closing = dice.pick(&[
        "Please let me know what happens next.",
        "Thank you for your help.",
        "I expect an answer this week.",
        "If this takes longer, please cancel and refund.",
        "Kind regards.",
    ]);
    let (first, second) = (dice.below(details.len()), dice.below(details.len() - 1));
    // The second detail is another one than the first.
    let second = (first + 1 + second) % details.len();
    let body = format!("{} {} {} {closing}", dice.pick(openings), details[first], details[second]);
    (filled(dice.pick(subjects), order), filled(&body, order))
}

fn filled(template: &str, order: Option<&Order>) -> String {
    let Some(order) = order else { return template.to_owned() };
    let item = order.items.first().map_or("order", |item| item.name);
    template.replace("{order}", &order.id).replace("{item}", item)
}

/// A first and a last name that are common in the country.
pub(super) fn name(country: &str, dice: &mut Dice) -> String {
    let (first, last) = match country {
        "DE" => (
            "Anna Lukas Jürgen Katrin Miriam Stefan Ute Jonas",
            "Müller Schneider Weber Becker Schäfer Koch Wolf Neumann Krüger Vogt",
        ),
        "ES" => (
            "Lucía Carlos Marta Javier Elena Pablo Nuria Diego",
            "García Romero Torres Navarro Molina Ortega Iglesias Vidal Núñez Cruz",
        ),
        "FR" => (
            "Camille Julien Léa Antoine Chloé Hugo Sophie Marc",
            "Martin Bernard Dubois Moreau Laurent Girard Fournier Mercier Lefèvre Roux",
        ),
        "IT" => (
            "Giulia Marco Chiara Luca Francesca Paolo Elisa Matteo",
            "Rossi Ferrari Bianchi Romano Ricci Marino Greco Conti Gallo Costa",
        ),
        "NL" => (
            "Sanne Daan Lotte Bram Femke Jeroen Anouk Thijs",
            "Jansen Bakker Visser Smit Meijer Mulder Bos Vos Peters Hendriks",
        ),
        "PL" => (
            "Zofia Jakub Agnieszka Piotr Hanna Michał Ewa Tomasz",
            "Nowak Kowalski Wójcik Lewandowski Mazur Krawczyk Pawlak Dudek Zając Wilk",
        ),
        "SE" => (
            "Elsa Oskar Freja Nils Astrid Björn Maja Åke",
            "Andersson Johansson Lindberg Nyström Berg Sandberg Holm Ekström Lund Sjöberg",
        ),
        "GB" => (
            "Olivia Harry Emily Jack Charlotte Oliver Grace Thomas",
            "Smith Taylor Davies Evans Wright Walker Hughes Green Clarke Bennett",
        ),
        _ => (
            "Ava Ethan Madison Tyler Abigail Logan Hannah Mason",
            "Johnson Miller Anderson Thompson Harris Lewis Nelson Carter Brooks Foster",
        ),
    };
    let mut word = |words: &'static str| {
        let words: Vec<_> = words.split(' ').collect();
        dice.pick(&words)
    };
    format!("{} {}", word(first), word(last))
}

/// The name as it is written in an e-mail address.
pub(super) fn ascii(name: &str) -> String {
    name.to_lowercase().chars().fold(String::new(), |mut address, letter| {
        match letter {
            ' ' => address.push('.'),
            'ä' | 'æ' => address.push_str("ae"),
            'ö' | 'ø' => address.push_str("oe"),
            'ü' => address.push_str("ue"),
            'á' | 'å' | 'ą' => address.push('a'),
            'ć' | 'ç' => address.push('c'),
            'é' | 'è' | 'ë' | 'ę' => address.push('e'),
            'í' => address.push('i'),
            'ł' => address.push('l'),
            'ñ' => address.push('n'),
            'ó' => address.push('o'),
            'ú' => address.push('u'),
            other => address.push(other),
        }
        address
    })
}
