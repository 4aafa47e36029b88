//! Counters of the forwarding path, and their Prometheus text.
//!
//! A shard asks [`Registry::switch`] for a [`SwitchMetrics`] when a switch has completed its handshake, and
//! [`SwitchMetrics::tenant`] for a [`TenantMetrics`] for each tenant on the switch. The session owns the `Arc`s; the
//! registry has weak references only. So the series of a disconnected switch disappear from `/metrics`, and the number
//! of live connections bounds the number of series, whatever dpids peers invent. The tenants' counts on the switch are
//! added to their [`totals`] ([`Registry::retire`]), so that sums over switches only grow.
//!
//! ```text
//!   shard 0 ──writes──► SwitchMetrics ─► TenantMetrics …  ◄──reads── control thread (GET /metrics)
//!   shard 1 ──writes──► SwitchMetrics ─► TenantMetrics …  ◄──reads──┘
//!            relaxed atomics, one writer each              Registry: weak references under a mutex
//! ```
//!
//! A switch lives on one shard, so each instrument has one writer: an increment is a plain load and store, no locked
//! bus cycle. The mutex is taken at connect, disconnect and scrape, never per message.
//!
//! Start reading at [`Registry`], then [`series`] (the counted events), [`instruments`] (the counters), `text` (the
//! text format).

mod api;
pub mod contacts;
pub mod instruments;
mod kinds;
mod names;
mod registry;
pub mod series;
mod text;
pub mod totals;

pub use api::{ApiMetrics, ApiRefusal};
pub use contacts::Lost;
pub use instruments::{Counter, Gauge, Histogram, SharedCounter, Snapshot};
pub use kinds::{Direction, DropReason, Kind, Rejection};
pub use registry::Registry;
pub use series::{
    AgentMetrics, EventLoopMetrics, Grant, LabelMetrics, ProcessMetrics, SheetUse, SwitchMetrics,
    TenantMetrics,
};
pub use text::{Detail, encode};
pub use totals::Sums;

/// The content type of [`encode`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
