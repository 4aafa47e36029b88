//! JSON in the body of a request.

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::de::DeserializeOwned;

use super::answers::error;
use super::bounds;
use crate::unsupported;

/// A JSON body with the content type of JSON: a page of another site cannot send this content type without a CORS
/// preflight.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Response;

    async fn from_request(request: Request, _state: &S) -> Result<Body<T>, Response> {
        if !is_json(request.headers()) {
            let message = "the body has to be application/json";
            return Err(error(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let bytes = bounds::body(request).await?;
        let body = serde_json::from_slice(&bytes)
            .map_err(|refused| error(StatusCode::BAD_REQUEST, &explained(refused.to_string())))?;
        Ok(Body(body))
    }
}

/// The error of a body. For a key that Weir deliberately does not support, the text includes the
/// reason.
fn explained(refused: String) -> String {
    match unsupported::reason_in(&refused) {
        Some(reason) => format!("not supported: {reason} ({refused})"),
        None => refused,
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}
