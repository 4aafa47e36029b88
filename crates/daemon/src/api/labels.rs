//! What a tenant was told of what is left of links, and the stream of what it is told. Names and units are part of the
//! interface: add, do not change.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::response::sse::Event;
use fabric::{PortId, TenantId};
use futures_core::Stream;
use hypervisor::Label;
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::bounds::Listener;
use super::topology::Place;
use crate::topology::Board;

/// Events that may wait for one client; a slower one misses some, and is told so.
const WAITING: usize = 64;

/// What became of labels.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LabelCounts)]
pub struct Counts {
    /// Flows that are followed.
    flows: usize,
    /// Flows that lead nowhere.
    lost_flows: usize,
    /// Labels that tenants were told.
    labels_told: u64,
    /// Labels that newer ones replaced before they were told.
    labels_replaced: u64,
}

impl Counts {
    /// As they are now.
    pub fn new(board: &Board) -> Counts {
        let counts = board.counts();
        Counts {
            flows: counts.flows,
            lost_flows: counts.lost_flows,
            labels_told: counts.told,
            labels_replaced: counts.replaced,
        }
    }
}

/// The link that leaves by a port.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Label)]
pub struct LabelOf {
    #[serde(flatten)]
    port: Place,
    /// What is left of it for the tenant.
    label_bits_per_second: u64,
    /// What it can carry.
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

    /// All that a tenant was told.
    pub fn all(board: &Board, tenant: TenantId) -> Vec<LabelOf> {
        board.labels(tenant).into_iter().map(|(port, label)| LabelOf::new(port, label)).collect()
    }
}

/// Server-sent events: first every label as it is, then each as it is told. `event: label` has one label as its data;
/// `event: missed` says that the client was too slow, and is followed by every label as it is.
pub struct Events {
    events: mpsc::Receiver<Event>,
    /// What lets others listen when it goes.
    _listener: Listener,
}

impl Events {
    /// Of one tenant, from now on.
    pub(super) fn new(board: Board, tenant: TenantId, listener: Listener) -> Events {
        let (sender, events) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            let mut told = board.listen();
            let mut repeat = true;
            loop {
                if std::mem::take(&mut repeat) {
                    for label in LabelOf::all(&board, tenant) {
                        if sender.send(event("label", &label)).await.is_err() {
                            return;
                        }
                    }
                }
                let next = tokio::select! {
                    next = told.recv() => next,
                    () = sender.closed() => return,
                };
                match next {
                    Ok(told) if told.tenant == tenant => {
                        let label = LabelOf::new(told.port, told.label);
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
        Events { events, _listener: listener }
    }
}

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_recv(context).map(|event| event.map(Ok))
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let event = Event::default().event(name);
    // Plain structures of numbers and strings are always JSON.
    event.json_data(data).unwrap_or_default()
}
