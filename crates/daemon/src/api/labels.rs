//! A tenant's link labels, and the stream of new labels. Names and units are part of the interface: add, do not change.

use std::convert::Infallible;

use axum::response::sse::Event;
use fabric::{PortId, TenantId};
use hypervisor::Label;
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::answers::Pieces;
use super::bounds::Listener;
use super::topology::Place;
use crate::metrics::LabelMetrics;
use crate::topology::LabelFeed;

/// The most events that wait for one client; a slower client misses events, and gets a notice.
const WAITING: usize = 64;

/// Counts of flows and labels.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LabelCounts)]
pub struct Counts {
    /// Followed flows.
    flows: usize,
    /// Followed flows that do not reach their receiver.
    lost_flows: usize,
    /// Labels sent to tenants.
    labels_sent: u64,
    /// Labels that a newer label replaced before they were sent.
    labels_replaced: u64,
}

impl Counts {
    /// The present counts.
    pub fn new(metrics: &LabelMetrics) -> Counts {
        Counts {
            flows: metrics.flows.get() as usize,
            lost_flows: metrics.lost_flows.get() as usize,
            labels_sent: metrics.sent.get(),
            labels_replaced: metrics.replaced.get(),
        }
    }
}

/// The label of the link that leaves by a port.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Label)]
pub struct LabelOf {
    #[serde(flatten)]
    port: Place,
    /// The residual bandwidth for the tenant.
    label_bits_per_second: u64,
    /// The capacity of the link.
    capacity_bits_per_second: u64,
}

impl LabelOf {
    fn new(port: PortId, label: Label) -> LabelOf {
        LabelOf {
            port: port.into(),
            label_bits_per_second: label.left,
            capacity_bits_per_second: label.capacity,
        }
    }

    /// All labels of a tenant.
    pub fn all(label_feed: &LabelFeed, tenant: TenantId) -> Vec<LabelOf> {
        label_feed
            .labels(tenant)
            .into_iter()
            .map(|(port, label)| LabelOf::new(port, label))
            .collect()
    }
}

/// Server-sent events of one tenant: first every present label, then each new label. `event: label` has one label as
/// its data; `event: missed` means that the client was too slow, and is followed by every present label.
pub(super) fn events(
    label_feed: LabelFeed,
    tenant: TenantId,
    listener: Listener,
) -> Pieces<Result<Event, Infallible>, Listener> {
    let (sender, events) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let mut sent = label_feed.listen();
        let mut repeat = true;
        loop {
            if std::mem::take(&mut repeat) {
                for label in LabelOf::all(&label_feed, tenant) {
                    if sender.send(event("label", &label)).await.is_err() {
                        return;
                    }
                }
            }
            let next = tokio::select! {
                next = sent.recv() => next,
                () = sender.closed() => return,
            };
            match next {
                Ok(sent) if sent.tenant == tenant => {
                    let label = LabelOf::new(sent.port, sent.label);
                    if sender.send(event("label", &label)).await.is_err() {
                        return;
                    }
                }
                Ok(_) => {}
                Err(RecvError::Lagged(count)) => {
                    if sender.send(event("missed", &count)).await.is_err() {
                        return;
                    }
                    repeat = true;
                }
                Err(RecvError::Closed) => return,
            }
        }
    });
    Pieces { pieces: events, _held: listener }
}

fn event(name: &str, data: &impl Serialize) -> Result<Event, Infallible> {
    let event = Event::default().event(name);
    // A structure of numbers and strings can always be written as JSON.
    Ok(event.json_data(data).unwrap_or_default())
}
