//! Southbound: one physical switch, from the queues of its tenants to the bytes on its connection.
//!
//! ```text
//!   tenants' messages ──► Queue per tenant ──► scheduler ──► Window ──► Pending (xid) ──► outbox ──► switch
//!   Weir's own ─────────► direct, behind the store ────────────────────────┘
//! ```
//! [`Session`] contains all of this. A session knows a tenant only by the tenant's index, and knows no flow tables. The
//! caller asks the session for the [`pending::Entry`] of an answer's xid, and decides what follows from the answer.
//!
//! [`installed`] has what the switch holds of the tenants' rules; [`diff`] says which message a rule needs.

mod departures;
pub(crate) mod diff;
pub(crate) mod features;
pub(crate) mod installed;
pub(crate) mod pending;
pub(crate) mod queue;
pub(crate) mod queues;
pub(crate) mod rates;
pub(crate) mod reports;
pub(crate) mod scheduler;
pub(crate) mod session;
pub(crate) mod window;

pub(crate) use session::Session;
