//! Southbound: one physical switch, from the queues of its tenants to the bytes on its connection.
//!
//! ```text
//!   tenants' messages ──► Queue per tenant ──► scheduler ──► Window ──► Pending (xid) ──► outbox ──► switch
//!   Weir's own ─────────► direct, behind the store ────────────────────────┘
//! ```
//! All of it is inside [`Session`]. It knows tenants by their places only, and nothing of tables: to what an answer of the switch
//! leads is decided by its caller, who asks for the [`pending::Entry`] of the answer's xid.
//!
//! What the switch holds of the tenants' rules is in [`installed`]; [`diff`] says which message makes a rule what is wanted.

mod departures;
pub(crate) mod diff;
pub(crate) mod features;
pub(crate) mod held;
pub(crate) mod installed;
pub(crate) mod pending;
pub(crate) mod queue;
pub(crate) mod queues;
pub(crate) mod rates;
pub(crate) mod scheduler;
pub(crate) mod session;
pub(crate) mod window;

pub(crate) use session::Session;
