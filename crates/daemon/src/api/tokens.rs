//! `/api/v1/tokens`: accounts by bearer tokens, made, listed and revoked by admins.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{delete, get};
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::{Elsewhere, Failure, Name, Unread, error};
use super::body::Body;
use super::bounds::Bounds;
use super::by::{Before, By};
use super::sources::Sources;
use crate::access::tokens::{Record, Seconds, TokenError, Tokens, Wish, now};
use crate::access::{Reach, Role};
use crate::store::StoreError;

/// Ten years: the longest lifetime of a token that expires.
const LONGEST: Seconds = 10 * 365 * 24 * 3600;

/// All tokens, without their texts.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Tokens)]
pub struct List {
    /// The tokens by number, including expired tokens.
    pub tokens: Vec<Record>,
}

/// The request for a new token.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({"role": "tenant", "tenant": "red", "name": "alice", "expires_in_s": 2_592_000})))]
pub struct NewToken {
    /// The role of the token.
    pub role: Role,
    /// The tenant of the role `tenant`.
    #[serde(default)]
    pub tenant: Option<String>,
    /// The owner or the purpose of the token; at most 64 characters.
    #[serde(default)]
    pub name: String,
    /// The lifetime in seconds, at most ten years; null: the token never expires.
    #[serde(default)]
    pub expires_in_s: Option<Seconds>,
}

/// A token that was made.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MadeToken {
    /// The text for `Authorization: Bearer TEXT`. Only this answer contains the text.
    pub token: String,
    /// The data of the token.
    #[serde(flatten)]
    pub record: Record,
}

pub(super) fn routes() -> Router<Sources> {
    Router::new()
        .route("/api/v1/tokens", get(list).post(make))
        .route("/api/v1/tokens/{id}", delete(revoke))
}

/// All tokens, without their texts.
#[utoipa::path(
    get,
    operation_id = "list_tokens",
    path = "/api/v1/tokens",
    responses((status = 200, description = "all tokens", body = List), Elsewhere)
)]
pub(super) async fn list(Extension(tokens): Extension<Arc<Tokens>>) -> Response {
    Json(List { tokens: tokens.list() }).into_response()
}

/// Makes a token. Only this answer contains the token's text.
#[utoipa::path(
    post,
    operation_id = "make_token",
    path = "/api/v1/tokens",
    request_body = NewToken,
    responses(
        (status = 200, description = "the token", body = MadeToken),
        (status = 400, description = "the body cannot be read, or asks for what there is not", body = Failure),
        (status = 409, description = "there are too many tokens, or there is no such tenant", body = Failure),
        (status = 503, description = "the token cannot be stored, or its making not be written down; there is none", body = Failure),
        Unread,
        Elsewhere,
    )
)]
pub(super) async fn make(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(tokens): Extension<Arc<Tokens>>,
    by: By,
    Body(new): Body<NewToken>,
) -> Response {
    let reach = match Reach::new(new.role, new.tenant.as_deref()) {
        Ok(reach) => reach,
        Err(why) => return error(StatusCode::BAD_REQUEST, why),
    };
    if new.expires_in_s.is_some_and(|lasts| !(1..=LONGEST).contains(&lasts)) {
        let message = "expires_in_s is between 1 and 315360000 (ten years)";
        return error(StatusCode::BAD_REQUEST, message);
    }
    let is_known = |name: &str| sources.current.get().tenants.iter().any(|it| it.name == name);
    if reach.tenant().is_some_and(|name| !is_known(name)) {
        return error(StatusCode::CONFLICT, "there is no tenant of this name");
    }
    let wish = Wish { reach, name: new.name, lasts: new.expires_in_s };
    let made = move || {
        by.change("make token", |before| {
            tokens.make(wish, now(), |record| write(&by, "a token is made", before, record))
        })
    };
    let work = move || match made() {
        Ok((token, record)) => Json(MadeToken { token, record }).into_response(),
        Err(refused) => {
            let status = match refused {
                TokenError::Name => StatusCode::BAD_REQUEST,
                TokenError::TooMany => StatusCode::CONFLICT,
                TokenError::Random(_) | TokenError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            };
            error(status, &format!("no token was made: {refused}"))
        }
    };
    bounds.off_thread(work).await
}

/// Revokes a token, which is invalid from then on.
#[utoipa::path(
    delete,
    operation_id = "revoke_token",
    path = "/api/v1/tokens/{id}",
    params(("id" = u64, Path, description = "the token's number")),
    responses(
        (status = 200, description = "the token that was revoked", body = Record),
        (status = 400, description = "the number cannot be read", body = Failure),
        (status = 404, description = "there is no token of this number", body = Failure),
        (status = 503, description = "that it is revoked cannot be stored; it opens nothing until Weir starts anew", body = Failure),
        Elsewhere,
    )
)]
pub(super) async fn revoke(
    Extension(bounds): Extension<Bounds>,
    Extension(tokens): Extension<Arc<Tokens>>,
    by: By,
    Name(id): Name,
) -> Response {
    let Ok(id) = id.parse() else {
        return error(StatusCode::BAD_REQUEST, "a token is named by its number");
    };
    let revoked = move || {
        by.change("revoke token", |before| {
            tokens.revoke(id, |record| write(&by, "a token is revoked", before, record))
        })
    };
    let work = move || match revoked() {
        Ok(Some(record)) => Json(record).into_response(),
        Ok(None) => error(StatusCode::NOT_FOUND, "there is no token of this number"),
        Err(why) => {
            let message = format!(
                "the token opens nothing from now on until Weir starts anew; revoke it again when there is room, since that cannot be stored: {why}"
            );
            error(StatusCode::SERVICE_UNAVAILABLE, &message)
        }
    };
    bounds.off_thread(work).await
}

/// Writes the new or revoked token to the audit log and to the log.
fn write(by: &By, what: &str, before: &Before<'_>, record: &Record) -> Result<(), StoreError> {
    let (peer, account) = (by.peer, &by.caller.known);
    tracing::info!(%peer, by = %account, id = record.id, role = %record.role, "{what}");
    before(record.tenant.as_deref(), serde_json::to_value(record).into_iter().collect())
}
