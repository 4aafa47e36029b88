//! The page: files that are a part of the program. The files contain nothing of Weir's state; the page requests its
//! data by REST.
//!
//! The content security policy allows the page to run only these files and to connect only to this server, so markup in
//! a name has no effect.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::answers::{Name, error};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// A file of the page.
struct File {
    /// The path after `/page/`; empty for the file at `/`.
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($path:literal $kind:ident $file:literal)*) => {
        &[$(File { path: $path, kind: $kind, bytes: include_bytes!(concat!("../../page/", $file)) }),*]
    };
}

const FILES: &[File] = files! {
    "" HTML "index.html"
    "style.css" STYLE "style.css"
    "icon.svg" PICTURE "icon.svg"
    "main.js" SCRIPT "main.js"
    "server.js" SCRIPT "server.js"
    "state.js" SCRIPT "state.js"
    "parts.js" SCRIPT "parts.js"
    "map.js" SCRIPT "map.js"
    "network.js" SCRIPT "network.js"
    "tenants.js" SCRIPT "tenants.js"
    "switches.js" SCRIPT "switches.js"
    "explain.js" SCRIPT "explain.js"
    "log.js" SCRIPT "log.js"
    "editor.js" SCRIPT "editor.js"
    "vendor/uPlot.js" SCRIPT "vendor/uPlot.iife.min.js"
    "vendor/uPlot.css" STYLE "vendor/uPlot.min.css"
    "vendor/cytoscape.js" SCRIPT "vendor/cytoscape.min.js"
};

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let files = FILES.iter().map(|file| (file.path, Sent::new(file)));
    let files: Files = Arc::new(files.collect());
    Router::new().route("/", get(index)).route("/page/{*file}", get(file)).layer(Extension(files))
}

type Files = Arc<BTreeMap<&'static str, Sent>>;

async fn index(Extension(files): Extension<Files>, headers: HeaderMap) -> Response {
    answer(&files, "", &headers)
}

async fn file(
    Extension(files): Extension<Files>,
    Name(path): Name,
    headers: HeaderMap,
) -> Response {
    answer(&files, &path, &headers)
}

fn answer(files: &Files, path: &str, headers: &HeaderMap) -> Response {
    match files.get(path) {
        Some(file) => file.answer(headers),
        None => error(StatusCode::NOT_FOUND, "the page has no such file"),
    }
}

/// A file in compressed form, which every browser accepts.
struct Sent {
    kind: &'static str,
    plain: &'static [u8],
    compressed: OnceLock<Bytes>,
    /// The version of the file; a browser that has this version does not get the file again.
    tag: String,
}

impl Sent {
    fn new(file: &File) -> Sent {
        let tag = format!("\"{:08x}\"", crc32fast::hash(file.bytes));
        Sent { kind: file.kind, plain: file.bytes, compressed: OnceLock::new(), tag }
    }

    fn answer(&self, asked: &HeaderMap) -> Response {
        let common: [(HeaderName, &str); 5] = [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-cache"),
            (header::ETAG, &self.tag),
        ];
        if asked.get(header::IF_NONE_MATCH).is_some_and(|known| known == self.tag.as_str()) {
            return (StatusCode::NOT_MODIFIED, common).into_response();
        }
        let form = [(header::CONTENT_TYPE, self.kind), (header::CONTENT_ENCODING, "gzip")];
        (common, form, self.compressed()).into_response()
    }

    fn compressed(&self) -> Bytes {
        let compress = || {
            let mut into = GzEncoder::new(Vec::new(), Compression::best());
            // Writing to memory cannot fail.
            let _ = into.write_all(self.plain);
            into.finish().unwrap_or_default().into()
        };
        self.compressed.get_or_init(compress).clone()
    }
}
