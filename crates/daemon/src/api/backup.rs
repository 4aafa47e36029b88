//! A backup of the present contents of the state folder.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc;

use super::answers::{Elsewhere, Failure, Pieces, error};
use super::bounds::Bounds;
use super::sources::Sources;
use crate::metrics::ApiRefusal;

/// The most parts of the backup that wait for the client.
const AHEAD: usize = 4;

/// A consistent copy of all state, for `weir serve --restore`. The copy contains Weir's secret, so the path requires
/// the same rights as changes.
#[utoipa::path(
    post,
    path = "/api/v1/backup",
    responses(
        (status = 200, description = "the backup", body = String, content_type = "application/octet-stream"),
        (status = 503, description = "there is no state folder, it cannot be read, or such an answer is being made for somebody else", body = Failure),
        Elsewhere,
    )
)]
pub(super) async fn backup(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
) -> Response {
    let Some(permit) = bounds.alone() else {
        let message = "such an answer is being made for somebody else";
        return bounds.refuse(ApiRefusal::Answers, message);
    };
    let documents = sources.documents;
    let snapshot = match tokio::task::spawn_blocking(move || documents.snapshot()).await {
        Ok(Ok(Some(snapshot))) => snapshot,
        Ok(Ok(None)) => {
            let message = "there is no state folder (weir serve --state)";
            return error(StatusCode::SERVICE_UNAVAILABLE, message);
        }
        Ok(Err(why)) => return error(StatusCode::SERVICE_UNAVAILABLE, &why.to_string()),
        Err(_) => return error(StatusCode::INTERNAL_SERVER_ERROR, "the request failed"),
    };
    let (sender, pieces) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let written = snapshot.write(&mut |piece| sender.blocking_send(Ok(piece)).is_ok());
        if let Err(error) = written {
            // The client recognizes that the end is missing.
            let _ = sender.blocking_send(Err(error));
        }
        drop(permit);
    });
    let body = Body::from_stream(Pieces { pieces, _held: () });
    ([(header::CONTENT_TYPE, "application/octet-stream")], body).into_response()
}
