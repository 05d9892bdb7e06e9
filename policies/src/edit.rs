//! Edits the text of a policy, and keeps its comments, its layout and the order of its entries:
//! [`set_effect`](set_effect()) gives a tool an effect, and [`allow_calls`](allow_calls()) allows calls that a person has
//! approved. [`unified_diff`](unified_diff()) shows a person what an edit changes. Nothing else in the product changes the
//! text of a policy.

mod allow_calls;
mod list_layout;
mod server_statements;
mod server_table;
mod set_effect;
mod unified_diff;

pub use allow_calls::allow_calls;
pub use server_statements::Statement;
pub use set_effect::{EditError, EditedPolicy, set_effect};
pub use unified_diff::unified_diff;
