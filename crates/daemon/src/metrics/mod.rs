//! Counters of the forwarding path, and their Prometheus text.
//!
//! A shard asks [`Registry::switch`] for a [`SwitchMetrics`] when a switch has shaken hands, and
//! [`SwitchMetrics::tenant`] for a [`TenantMetrics`] per tenant on it. It keeps the `Arc`s with the session and
//! drops them with it: the registry holds weak references only, so what a disconnected switch counted disappears
//! from `/metrics`, and the number of series is bounded by the number of live connections, whatever dpids peers
//! invent. What tenants counted there is added to their [`totals`] ([`Registry::retire`]), so that sums over switches only
//! grow.
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
//! Start reading at [`Registry`], then [`series`] (what is counted), [`instruments`] (how), `text` (how it is
//! printed).

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
    AgentMetrics, Grant, LabelMetrics, ProcessMetrics, SheetUse, SwitchMetrics, TenantMetrics,
};
pub use text::{Detail, encode};
pub use totals::Sums;

/// The content type of [`encode`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
