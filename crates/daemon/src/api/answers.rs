//! The common parts of all REST paths: names in paths, and answers to refused requests. Each refusal is one JSON
//! object, [`Failure`]; the OpenAPI document lists the refusals of each path.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_core::Stream;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::Receiver;
use utoipa::{IntoResponses, ToSchema};

use crate::shard::shown::NoAnswer;

/// The reason why a request was refused.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"error": "there is no tenant of this name"}), json!({
    "error": "refused; nothing was changed",
    "reasons": ["red: 00:00:00:00:00:00:00:01 port 7 is not there, or not for this tenant"]
})))]
pub struct Failure {
    /// A short reason.
    pub error: String,
    /// For an impossible network: all reasons, each with the part of the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// Refusals of a path with a name.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is there for the document alone")]
pub(super) enum Unnamed {
    /// The name in the path cannot be read.
    #[response(status = 400)]
    Unreadable(Failure),
    /// Nothing has this name.
    #[response(status = 404)]
    Missing(Failure),
}

/// Refusals of every path.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is there for the document alone")]
pub(super) enum Elsewhere {
    /// The request has no valid account; not where callers on this machine need no account.
    #[response(status = 401)]
    Unknown(Failure),
    /// The request used a host name that is not Weir's, came from a page of another site, or is not allowed for the
    /// caller's role.
    #[response(status = 403)]
    Forbidden(Failure),
    /// The account, or the address without an account, has sent too many requests; the header `Retry-After` says when
    /// to try again.
    #[response(status = 429)]
    TooOften(Failure),
}

/// Refusals of a path that changes something.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is there for the document alone")]
pub(super) enum Unchanged {
    /// The path, the query or the body cannot be read.
    #[response(status = 400)]
    Unreadable(Failure),
    /// The tenant, network or part does not exist.
    #[response(status = 404)]
    Missing(Failure),
    /// The change is impossible, for these reasons; nothing was changed.
    #[response(status = 409)]
    Refused(Failure),
    /// The request failed because of an error in Weir.
    #[response(status = 500)]
    Failed(Failure),
    /// The change cannot be stored; nothing was changed.
    #[response(status = 503)]
    Unstored(Failure),
}

/// Refusals of a path with a request body.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is there for the document alone")]
pub(super) enum Unread {
    /// The body has more than 16 MiB.
    #[response(status = 413)]
    Large(Failure),
    /// The content type is not application/json.
    #[response(status = 415)]
    Kind(Failure),
}

/// The error for an unknown path.
pub(super) const NOTHING: &str = "there is nothing at this path";
/// The error for a path with another method.
pub(super) const OTHER_METHOD: &str = "this path takes another method";

/// A refusal as an answer.
pub(super) fn error(status: StatusCode, message: &str) -> Response {
    let failure = Failure { error: message.to_owned(), reasons: Vec::new() };
    (status, Json(failure)).into_response()
}

/// The refusal if a shard does not answer, or if traces and lists have used their part of the event loops' time.
pub(super) fn unanswered(why: NoAnswer, silence: &str) -> Response {
    if why == NoAnswer::Silence {
        return error(StatusCode::SERVICE_UNAVAILABLE, silence);
    }
    let message = "traces, flow tables and lists of refusals have used their part of Weir's time: ask again in a second";
    let mut response = error(StatusCode::TOO_MANY_REQUESTS, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// A JSON answer with many repetitions: compressed if the client accepts this, usually to less than a tenth.
pub(super) fn compressed(asked: &HeaderMap, answer: &impl Serialize) -> Response {
    let takes = asked.get(header::ACCEPT_ENCODING).and_then(|takes| takes.to_str().ok());
    if !takes.is_some_and(|takes| takes.split(',').any(|it| it.trim() == "gzip")) {
        return Json(answer).into_response();
    }
    let mut into = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(&mut into, answer);
    let form = [(header::CONTENT_TYPE, "application/json"), (header::CONTENT_ENCODING, "gzip")];
    (form, into.finish().unwrap_or_default()).into_response()
}

/// Pieces of an answer, or events, that are made while the client reads them. The held value is dropped with them.
pub(super) struct Pieces<T, H = ()> {
    pub(super) pieces: Receiver<T>,
    pub(super) _held: H,
}

impl<T, H: Unpin> Stream for Pieces<T, H> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.pieces.poll_recv(context)
    }
}

/// The name in the path, or the names.
pub(super) struct Name<T = String>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Name<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Name<T>, Response> {
        let refuse = |refused: PathRejection| error(refused.status(), &refused.body_text());
        let Path(name) = Path::from_request_parts(parts, state).await.map_err(refuse)?;
        Ok(Name(name))
    }
}
