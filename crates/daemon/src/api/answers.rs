//! What every path of the REST interface has in common: how a name is read in a path, and how what cannot
//! be done is answered. All refusals are one JSON object, [`Failure`]; the OpenAPI document names those that a path can give.

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use utoipa::{IntoResponses, ToSchema};

/// Why a request was not done.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"error": "there is no tenant of this name"}), json!({
    "error": "refused; nothing was changed",
    "reasons": ["red: 00:00:00:00:00:00:00:01 port 7 is not there, or not for this tenant"]
})))]
pub struct Failure {
    /// In short.
    pub error: String,
    /// Of a network that cannot be: each reason, with the part that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// Of a path with a name in it.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is there for the document alone")]
pub(super) enum Unnamed {
    /// The name in the path cannot be read.
    #[response(status = 400)]
    Unreadable(Failure),
    /// There is nothing of that name.
    #[response(status = 404)]
    Missing(Failure),
}

/// Of every path.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is there for the document alone")]
pub(super) enum Elsewhere {
    /// There is no account, or none that is in force; not where being on this machine is enough.
    #[response(status = 401)]
    Unknown(Failure),
    /// It was asked for by a name that is not Weir's, or by a page of another site; or the caller's role may not do that.
    #[response(status = 403)]
    Forbidden(Failure),
    /// The account, or the address without one, has asked too often; the header `Retry-After` says when to ask again.
    #[response(status = 429)]
    TooOften(Failure),
}

/// Of a path that changes something.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is there for the document alone")]
pub(super) enum Unchanged {
    /// The path, the query or the body cannot be read.
    #[response(status = 400)]
    Unreadable(Failure),
    /// There is no such tenant, network or part.
    #[response(status = 404)]
    Missing(Failure),
    /// It cannot be, for these reasons; nothing was changed.
    #[response(status = 409)]
    Refused(Failure),
    /// The request failed by a fault of Weir's.
    #[response(status = 500)]
    Failed(Failure),
    /// It cannot be stored; nothing was changed.
    #[response(status = 503)]
    Unstored(Failure),
}

/// Of a path that takes a body.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is there for the document alone")]
pub(super) enum Unread {
    /// The body has more than 16 MiB.
    #[response(status = 413)]
    Large(Failure),
    /// The body is not said to be application/json.
    #[response(status = 415)]
    Kind(Failure),
}

/// Where no route leads.
pub(super) const NOTHING: &str = "there is nothing at this path";
/// Where a route leads with another method.
pub(super) const OTHER_METHOD: &str = "this path takes another method";

/// An answer that is a refusal.
pub(super) fn error(status: StatusCode, message: &str) -> Response {
    let failure = Failure { error: message.to_owned(), reasons: Vec::new() };
    (status, Json(failure)).into_response()
}

/// Questions of people have used their part of the event loops' time.
pub(super) fn busy() -> Response {
    let message = "traces, flow tables and lists of refusals have used their part of Weir's time: ask again in a second";
    let mut response = error(StatusCode::TOO_MANY_REQUESTS, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// JSON that says the same again and again: compressed for who takes that, to less than a tenth as a rule.
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

/// The name in the path.
pub(super) struct Name(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Name, Response> {
        let refuse = |refused: PathRejection| error(refused.status(), &refused.body_text());
        let Path(name) = Path::from_request_parts(parts, state).await.map_err(refuse)?;
        Ok(Name(name))
    }
}
