//! As much of an HTTP/1.1 client as asking a REST interface takes: one request on a connection, and its answer, whose
//! body has a stated length, comes in chunks, or ends with the connection.
//!
//! Deliberately without TLS, redirects and connections that are kept, and without dialling: the caller brings a stream
//! with its timeouts. An answer is bounded by what the caller takes of it. Start reading at [`ask`].

#![forbid(unsafe_code)]

mod body;

pub use body::Body;

use body::Framing;
use std::io::{self, BufRead, BufReader, Read, Write};

/// Longest head of an answer.
const LONGEST_HEAD: u64 = 64 << 10;
/// Most headers of an answer.
const MOST_HEADERS: usize = 64;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Such as `GET`.
    pub method: &'a str,
    /// Such as `/api/v1/tenants`.
    pub path: &'a str,
    /// Whom the connection leads to, such as `127.0.0.1:8080`.
    pub host: &'a str,
    /// The token of the account that asks, such as of RFC 6750.
    pub token: Option<&'a str>,
    /// The body's content type; nothing is said of the body if none is given.
    pub kind: Option<&'a str>,
    /// The body.
    pub body: &'a str,
}

impl<'a> Request<'a> {
    /// A question without a body.
    #[must_use]
    pub fn new(method: &'a str, path: &'a str, host: &'a str) -> Request<'a> {
        Request { method, path, host, token: None, kind: None, body: "" }
    }

    /// The same with a body of JSON.
    #[must_use]
    pub fn json(self, body: &'a str) -> Request<'a> {
        Request { kind: Some("application/json"), body, ..self }
    }

    fn head(&self) -> String {
        let Request { method, path, host, .. } = self;
        let line = |name: &str, value: Option<&str>| {
            value.map(|value| format!("{name}{value}\r\n")).unwrap_or_default()
        };
        let token = line("Authorization: Bearer ", self.token);
        let kind = line("Content-Type: ", self.kind);
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}{kind}Content-Length: {}\r\n\r\n",
            self.body.len()
        )
    }
}

/// An answer whose body is yet to be read.
#[derive(Debug)]
pub struct Answer<S> {
    /// Such as 200.
    pub status: u16,
    /// The content type; empty if there is none.
    pub kind: String,
    /// The body, as it comes.
    pub body: Body<BufReader<S>>,
}

impl<S: Read> Answer<S> {
    /// The body as text.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`]: it is longer than `most` bytes or is not text; otherwise the connection's own.
    pub fn text(self, most: u64) -> io::Result<String> {
        let mut text = String::new();
        let mut body = self.body.take(most.saturating_add(1));
        body.read_to_string(&mut text)?;
        if text.len() as u64 > most {
            return Err(invalid("the answer is too long"));
        }
        Ok(text)
    }
}

/// Asks, and reads the head of the answer.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`]: what came is not HTTP; otherwise the connection's own.
pub fn ask<S: Read + Write>(mut stream: S, request: &Request<'_>) -> io::Result<Answer<S>> {
    // One write: one packet where it fits.
    let whole = request.head() + request.body;
    stream.write_all(whole.as_bytes())?;
    read(stream)
}

/// Reads the head of an answer.
///
/// # Errors
/// As [`ask`].
pub fn read<S: Read>(stream: S) -> io::Result<Answer<S>> {
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let left = LONGEST_HEAD.saturating_sub(head.len() as u64);
        if stream.by_ref().take(left).read_until(b'\n', &mut head)? == 0 {
            return Err(invalid("not HTTP"));
        }
    }
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(&head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) | Err(_) => return Err(invalid("not HTTP")),
    }
    let header = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.and_then(|header| std::str::from_utf8(header.value).ok()).map(str::trim)
    };
    let framing = match (header("transfer-encoding"), header("content-length")) {
        (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Framing::chunked(),
        (Some(_), _) => return Err(invalid("the answer's transfer coding is not known")),
        (None, Some(length)) => Framing::Length(
            length.parse().map_err(|_| invalid("the answer's length is no number"))?,
        ),
        (None, None) => Framing::ToTheEnd,
    };
    let status = response.code.ok_or_else(|| invalid("not HTTP"))?;
    let kind = header("content-type").unwrap_or_default().to_owned();
    Ok(Answer { status, kind, body: Body::new(stream, framing) })
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};

    #[track_caller]
    fn check(answer: &str, expected: Result<(u16, &str), io::ErrorKind>) {
        let read = read(answer.as_bytes()).and_then(|answer| {
            let status = answer.status;
            Ok((status, answer.text(100)?))
        });
        let read = read.as_ref().map(|(status, text)| (*status, text.as_str()));
        assert_eq!(read.map_err(io::Error::kind), expected, "{answer:?}");
    }

    #[test]
    fn http_replies_are_parsed_and_invalid_replies_are_refused() {
        let ok = "HTTP/1.1 200 OK\r\n";
        check(&format!("{ok}Content-Type: a\r\n\r\n{{\"flows\": 3}}"), Ok((200, "{\"flows\": 3}")));
        check("HTTP/1.1 404 Not Found\r\n\r\n", Ok((404, "")));
        check(&format!("{ok}Content-Length: 3\r\n\r\nabcdef"), Ok((200, "abc")));
        check(&format!("{ok}content-length: 9\r\n\r\nabc"), Err(UnexpectedEof));
        check(&format!("{ok}Content-Length: -1\r\n\r\n"), Err(InvalidData));
        check(&format!("{ok}\r\n{}", "x".repeat(101)), Err(InvalidData));
        check(&format!("{ok}Transfer-Encoding: gzip\r\n\r\n"), Err(InvalidData));
        check("SSH-2.0-OpenSSH\r\n\r\n", Err(InvalidData));
        check("HTTP/1.1 200 OK\r\n", Err(InvalidData));
        check("", Err(InvalidData));
        check(&format!("HTTP/1.1 200 {}", "x".repeat(1 << 17)), Err(InvalidData));
    }

    #[test]
    fn chunked_http_bodies_are_parsed_and_invalid_chunks_are_refused() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (chunks, expected) in [
            ("3\r\nabc\r\n0\r\n\r\n", Ok("abc")),
            ("3;name=value\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", Ok("abc0123456789")),
            ("0\r\nTrailer: 1\r\n\r\n", Ok("")),
            ("3\r\nab", Err(UnexpectedEof)),
            ("3\r\nabc", Err(UnexpectedEof)),
            ("3\r\nabcd\r\n", Err(InvalidData)),
            ("+3\r\nabc\r\n0\r\n\r\n", Err(InvalidData)),
            ("x\r\n", Err(InvalidData)),
            ("ffffffffffffffffff\r\n", Err(InvalidData)),
            ("", Err(UnexpectedEof)),
        ] {
            let expected = expected.map(|text| (200, text));
            check(&format!("{head}{chunks}"), expected);
        }
    }

    #[test]
    fn the_head_of_an_http_request_has_host_length_and_token() {
        let request = Request::new("PUT", "/a", "b:1").json("{}");
        let expected = "PUT /a HTTP/1.1\r\nHost: b:1\r\nConnection: close\r\n\
                        Content-Type: application/json\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(request.head(), expected);
        let head = Request::new("GET", "/", "b").head();
        assert!(head.ends_with("close\r\nContent-Length: 0\r\n\r\n"), "{head}");
        let head = Request { token: Some("t"), ..Request::new("GET", "/", "b") }.head();
        assert!(head.contains("\r\nAuthorization: Bearer t\r\nContent-Length"), "{head}");
    }
}
