//! The bounds for all clients of the REST interface together: threads, memory for bodies and answers, streams of
//! events.
//!
//! If a resource is used up, further requests are refused with 503 and counted. Small bodies, small answers and
//! `/healthz` use no shared resource, so they are not refused.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use futures_core::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Duration, Instant, timeout};

use super::answers::{Pieces, error};
use crate::lock::lock;
use crate::metrics::{ApiRefusal, Detail, Registry, encode};

/// The most bytes of a body. A document of a thousand links has some 200 kB.
const LARGEST_BODY: usize = 16 << 20;
/// Bodies and answers up to this size are bounded by the number of connections alone.
const SMALL: usize = 64 << 10;
/// The most KiB of larger bodies at the same time: two of the largest.
const BODIES: usize = 32 << 10;
/// The most KiB of larger answers at the same time.
const ANSWERS: usize = 64 << 10;
/// The most listeners to events of one tenant.
const LISTENERS_TO_ONE: usize = 8;
/// The most answers that are computed outside the control thread at the same time.
const WORKERS: usize = 4;
/// Threads beside the control thread: the workers, two for metrics, one for health, one for summaries, one that reads
/// the configuration.
pub(crate) const THREADS: usize = WORKERS + 5;
/// How long a request waits for a worker.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most parts of an answer that wait for the client.
const AHEAD: usize = 4;

/// The shared resources. Cheap to clone.
#[derive(Clone)]
pub(super) struct Bounds(Arc<Shared>);

struct Shared {
    metrics: Arc<Registry>,
    bodies: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    workers: Arc<Semaphore>,
    pages: Arc<Semaphore>,
    sums: Arc<Semaphore>,
    product: Arc<Semaphore>,
    /// The most listeners to events.
    most_listeners: usize,
    listeners: Mutex<HashMap<String, usize>>,
    /// The start of the last complete health check, and its result.
    pulse: tokio::sync::Mutex<Option<(Instant, Option<usize>)>>,
}

impl Bounds {
    /// All resources are free; `most_listeners` bounds the listeners to events.
    pub(super) fn new(metrics: Arc<Registry>, most_listeners: usize) -> Bounds {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Bounds(Arc::new(Shared {
            metrics,
            bodies: semaphore(BODIES),
            answers: semaphore(ANSWERS),
            workers: semaphore(WORKERS),
            pages: semaphore(1),
            sums: semaphore(1),
            product: semaphore(1),
            most_listeners,
            listeners: Mutex::default(),
            pulse: tokio::sync::Mutex::default(),
        }))
    }

    /// Refuses a request, and counts the refusal.
    pub(super) fn refuse(&self, why: ApiRefusal, message: &str) -> Response {
        self.count(why);
        error(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    fn count(&self, why: ApiRefusal) {
        self.0.metrics.process.api.refused(why).increment();
    }

    /// Makes one health check for all clients that ask at the same time. The check uses no worker of other requests.
    pub(super) async fn pulse(
        &self,
        feel: impl FnOnce() -> Option<usize> + Send + 'static,
    ) -> Option<usize> {
        let asked = Instant::now();
        let mut last = self.0.pulse.lock().await;
        if let Some((begun, felt)) = *last
            && begun >= asked
        {
            return felt;
        }
        let begun = Instant::now();
        let felt = tokio::task::spawn_blocking(feel).await.ok().flatten();
        *last = Some((begun, felt));
        felt
    }

    /// Runs slow work on a worker: placing a large network, storing, or listing all switches.
    pub(super) async fn off_thread(
        &self,
        work: impl FnOnce() -> Response + Send + 'static,
    ) -> Response {
        let worker = timeout(PATIENCE, Arc::clone(&self.0.workers).acquire_owned()).await;
        let Ok(Ok(worker)) = worker else {
            return self.refuse(ApiRefusal::Answers, "other requests are being worked on");
        };
        let worked = tokio::task::spawn_blocking(move || {
            let response = work();
            drop(worker);
            response
        });
        match worked.await {
            Ok(response) => response,
            Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "the request failed"),
        }
    }

    /// Makes pages of flow tables, which shards make between their turns: one page at a time, while other requests
    /// wait.
    pub(super) async fn page(&self, work: impl FnOnce() -> Response + Send + 'static) -> Response {
        let turn = timeout(PATIENCE, Arc::clone(&self.0.pages).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            return self.refuse(ApiRefusal::Answers, "others are shown flow tables");
        };
        let work = move || {
            let response = work();
            drop(turn);
            response
        };
        self.off_thread(work).await
    }

    /// Makes metrics. Sums are computed for one client at a time, while others wait. The product of tenants and
    /// switches is large: only one client at a time can read it, and others are refused.
    pub(super) async fn metrics(&self, detail: Detail) -> Option<Body> {
        let metrics = Arc::clone(&self.0.metrics);
        match detail {
            Detail::Sums => {
                let sums = timeout(PATIENCE, Arc::clone(&self.0.sums).acquire_owned());
                let permit = sums.await.ok()?.ok()?;
                let made = tokio::task::spawn_blocking(move || {
                    let mut text = String::new();
                    encode(&metrics, detail, &mut |piece| {
                        text.push_str(&piece);
                        true
                    });
                    drop(permit);
                    text
                });
                Some(Body::from(made.await.ok()?))
            }
            Detail::Product => {
                let permit = self.alone()?;
                let (sender, pieces) = mpsc::channel(AHEAD);
                tokio::task::spawn_blocking(move || {
                    let mut send = |piece| sender.blocking_send(Ok::<_, Infallible>(piece)).is_ok();
                    encode(&metrics, detail, &mut send);
                    drop(permit);
                });
                Some(Body::from_stream(Pieces { pieces, _held: () }))
            }
        }
    }

    /// A permit for an answer that is computed while the client reads it: there is one such answer at a time.
    pub(super) fn alone(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.product).try_acquire_owned().ok()
    }

    /// A place for another listener to a tenant's events.
    pub(super) fn listener(&self, tenant: &str) -> Option<Listener> {
        self.place(format!("labels of {tenant}"), LISTENERS_TO_ONE)
    }

    /// A place for another viewer of the summary of everything, or of one tenant.
    pub(super) fn viewer(&self, tenant: Option<&str>) -> Option<Listener> {
        match tenant {
            None => self.place("everything".to_owned(), self.0.most_listeners),
            Some(tenant) => self.place(format!("all of {tenant}"), LISTENERS_TO_ONE),
        }
    }

    /// A place for a listener to `to`, with at most `most` listeners.
    fn place(&self, to: String, most: usize) -> Option<Listener> {
        let mut listeners = lock(&self.0.listeners);
        let all: usize = listeners.values().sum();
        let same = listeners.get(&to).copied().unwrap_or(0);
        if all >= self.0.most_listeners || same >= most {
            return None;
        }
        listeners.insert(to.clone(), same + 1);
        Some(Listener { of: self.clone(), to })
    }
}

/// The place of a listener to events.
pub(super) struct Listener {
    of: Bounds,
    /// The subject of the events.
    to: String,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut listeners = lock(&self.of.0.listeners);
        if let Some(count) = listeners.get_mut(&self.to) {
            *count -= 1;
            if *count == 0 {
                listeners.remove(&self.to);
            }
        }
    }
}

/// The whole body of a request. A body without room is read to its end before the answer, because otherwise the client
/// would miss the answer. The refusal is counted as soon as there is no room: a body may never end.
pub(super) async fn body(request: Request) -> Result<Bytes, Response> {
    let bounds = request.extensions().get::<Bounds>().cloned();
    let mut frames = request.into_body().into_data_stream();
    let (mut kept, mut length) = (Kept::default(), 0);
    let mut permits: Option<OwnedSemaphorePermit> = None;
    let mut has_room = true;
    while let Some(frame) = next(&mut frames).await {
        let Ok(frame) = frame else {
            return Err(error(StatusCode::BAD_REQUEST, "the body is cut off"));
        };
        length += frame.len();
        if length > LARGEST_BODY {
            return Err(error(StatusCode::PAYLOAD_TOO_LARGE, "the body has more than 16 MiB"));
        }
        let held = permits.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = length.saturating_sub(SMALL).div_ceil(1024).saturating_sub(held);
        if more > 0 && has_room {
            let more = bounds.as_ref().and_then(|bounds| {
                Arc::clone(&bounds.0.bodies).try_acquire_many_owned(more as u32).ok()
            });
            match (more, &mut permits) {
                (Some(more), Some(permits)) => permits.merge(more),
                (Some(more), None) => permits = Some(more),
                (None, _) => {
                    bounds.iter().for_each(|bounds| bounds.count(ApiRefusal::Bodies));
                    has_room = false;
                    kept = Kept::default();
                    permits = None;
                }
            }
        }
        if has_room {
            kept.push(&frame);
        }
    }
    match has_room {
        true => Ok(kept.joined()),
        false => Err(error(StatusCode::SERVICE_UNAVAILABLE, "too many large bodies come at once")),
    }
}

/// The part of a body that has come, in pieces. One growing buffer would use up to twice the memory of the body.
#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl Kept {
    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.0.last().is_none_or(|piece| piece.len() == SMALL) {
                self.0.push(Vec::new());
            }
            let Some(piece) = self.0.last_mut() else { return };
            let room = SMALL - piece.len();
            let (now, later) = bytes.split_at(bytes.len().min(room));
            // The body of a small request comes at once, and needs no whole piece.
            piece.reserve_exact(if piece.is_empty() { now.len() } else { room });
            piece.extend_from_slice(now);
            bytes = later;
        }
    }

    fn joined(self) -> Bytes {
        self.0.concat().into()
    }
}

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

/// Bounds the memory of answers: a large answer needs room until the client has read it.
pub(super) async fn answers(request: Request, next: Next) -> Response {
    let bounds = request.extensions().get::<Bounds>().cloned();
    let response = next.run(request).await;
    let size = response.body().size_hint().lower();
    if size <= SMALL as u64 {
        return response;
    }
    let Some(bounds) = bounds else { return response };
    let needed = u32::try_from(size.div_ceil(1024)).unwrap_or(u32::MAX).min(ANSWERS as u32);
    match Arc::clone(&bounds.0.answers).try_acquire_many_owned(needed) {
        Ok(permit) => response.map(|body| Body::new(Held { body, _permit: permit })),
        Err(_) => {
            drop(response);
            bounds.refuse(ApiRefusal::Answers, "too many large answers are under way")
        }
    }
}

/// A body that holds a permit until the client has read the body.
struct Held {
    body: Body,
    _permit: OwnedSemaphorePermit,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::handler::Handler;
    use axum::middleware::from_fn;
    use axum::response::IntoResponse;

    use super::*;

    /// Two unread answers use all bytes for large answers. A third large answer is refused, and a small answer is sent.
    #[tokio::test]
    async fn large_answers_are_refused_while_two_large_answers_are_unread() {
        let bounds = Bounds::new(Registry::new(), 1);
        let ask = |size: usize| {
            let handler = move || async move { vec![0u8; size] };
            let mut request = Request::new(Body::empty());
            request.extensions_mut().insert(bounds.clone());
            handler.layer(from_fn(answers)).call(request, ())
        };
        let refused = || bounds.0.metrics.process.api.refused(ApiRefusal::Answers).get();
        let half = 32 << 20;
        let (first, second) = (ask(half).await, ask(half).await);
        assert_eq!(
            (first.status(), second.status(), refused()),
            (StatusCode::OK, StatusCode::OK, 0)
        );
        assert_eq!(ask((64 << 10) + 1).await.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!((ask(64 << 10).await.status(), refused()), (StatusCode::OK, 1));
        // An answer frees its bytes when the answer is dropped. A single answer may be larger than all bytes for
        // answers.
        drop(first);
        assert_eq!(ask(half).await.status(), StatusCode::OK);
        drop(second);
        assert_eq!(ask(3 * half).await.status(), StatusCode::OK);
        assert_eq!(refused(), 1);
    }

    #[test]
    fn a_request_body_uses_less_than_64_kib_more_memory_than_received_bytes() {
        for frame in [1, 1_000, 64 << 10, 100_000] {
            let body: Vec<u8> = (0..1_000_000_u32).map(|byte| byte as u8).collect();
            let mut kept = Kept::default();
            let mut length = 0;
            for part in body.chunks(frame) {
                kept.push(part);
                length += part.len();
                let capacity: usize = kept.0.iter().map(Vec::capacity).sum();
                assert!(capacity < length + 64 * 1024, "{frame}: {capacity} for {length}");
            }
            assert_eq!(kept.joined(), body, "{frame}");
        }
        assert!(Kept::default().joined().is_empty());
    }

    /// Ten clients ask for a health check. The first check lasts until all ten clients have asked. One more check then
    /// answers the other nine clients.
    #[tokio::test]
    async fn a_health_check_answers_every_client_that_asks_at_the_same_time() {
        let bounds = Bounds::new(Registry::new(), 1);
        let checks = Arc::new(AtomicUsize::new(0));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let ask = || {
            let (bounds, checks, held) = (bounds.clone(), Arc::clone(&checks), Arc::clone(&held));
            tokio::spawn(async move {
                let feel = move || {
                    checks.fetch_add(1, Ordering::SeqCst);
                    // The check waits until the test drops `release`.
                    let _ = held.lock().unwrap().recv();
                    Some(2)
                };
                bounds.pulse(feel).await
            })
        };
        let all: Vec<_> = (0..10).map(|_| ask()).collect();
        // All ten clients have asked when this task continues.
        tokio::task::yield_now().await;
        drop(release);
        for one in all {
            assert_eq!(one.await.unwrap(), Some(2));
        }
        assert_eq!(checks.load(Ordering::SeqCst), 2);
        assert_eq!(ask().await.unwrap(), Some(2));
        assert_eq!(checks.load(Ordering::SeqCst), 3, "who asks later gets no old answer");
    }

    #[tokio::test]
    async fn at_most_one_page_is_built_at_a_time() {
        let bounds = Bounds::new(Registry::new(), 1);
        let [inside, most] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let all: Vec<_> = (0..4)
            .map(|_| {
                let bounds = bounds.clone();
                let (inside, most) = (Arc::clone(&inside), Arc::clone(&most));
                tokio::spawn(async move {
                    let work = move || {
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        // Each page takes 20 ms, so without the limit the four pages would be built at the same time.
                        std::thread::sleep(Duration::from_millis(20));
                        inside.fetch_sub(1, Ordering::SeqCst);
                        StatusCode::OK.into_response()
                    };
                    bounds.page(work).await
                })
            })
            .collect();
        for one in all {
            assert_eq!(one.await.unwrap().status(), StatusCode::OK);
        }
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }
}
