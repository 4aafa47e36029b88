//! As much of HTTP/1.1 as asking Weir takes: one request a connection.

use super::endpoint::Endpoint;
use anyhow::{Context, bail};
use channel::ServiceTrust;
use daemon::api::Failure;
use serde::Serialize;
use std::io::{BufRead, BufReader, Read, Write};

/// Longest header of an answer.
const LARGEST_LINE: u64 = 64 << 10;

/// Longest answer that is read.
const LARGEST: u64 = 64 << 20;

pub struct Client {
    api: Endpoint,
    trust: Option<ServiceTrust>,
    /// The header that says who asks, with its end of line; empty without an account.
    account: String,
}

pub enum Answer {
    /// The body.
    Done(String),
    /// It was understood and not done.
    Refused(Failure),
}

impl Client {
    /// With a token, if there is one.
    pub fn new(api: Endpoint, trust: Option<ServiceTrust>, token: Option<&str>) -> Client {
        let account = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        Client { api, trust, account: account.unwrap_or_default() }
    }

    pub fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.ask("GET", path, None)
    }

    pub fn delete(&self, path: &str) -> anyhow::Result<Answer> {
        self.ask("DELETE", path, None)
    }

    pub fn send(&self, method: &str, path: &str, body: &impl Serialize) -> anyhow::Result<Answer> {
        self.ask(method, path, Some(&serde_json::to_string(body)?))
    }

    fn ask(&self, method: &str, path: &str, body: Option<&str>) -> anyhow::Result<Answer> {
        let api = &self.api;
        let (status, body) = self.exchange(method, path, body).with_context(|| {
            format!(
                "no answer from {api}: is `weir serve` running there, and [listen] api not off?"
            )
        })?;
        match status {
            200 => Ok(Answer::Done(body)),
            400..=499 | 503 => match serde_json::from_str(&body) {
                Ok(failure) => Ok(Answer::Refused(failure)),
                Err(_) => bail!("{api} answers {status}: not a Weir of this version"),
            },
            _ => bail!("{api} answers {status}: {body}"),
        }
    }

    /// Asks for something to be made, and writes it somewhere as it comes.
    pub fn download(&self, path: &str, into: &mut impl Write) -> anyhow::Result<Answer> {
        let api = &self.api;
        let (status, mut body) = self.begin_download(path).with_context(|| {
            format!(
                "no answer from {api}: is `weir serve` running there, and [listen] api not off?"
            )
        })?;
        if status == 200 {
            std::io::copy(&mut body, into).context("the answer cannot be taken")?;
            return Ok(Answer::Done(String::new()));
        }
        let mut text = String::new();
        body.take(LARGEST).read_to_string(&mut text)?;
        match serde_json::from_str(&text) {
            Ok(failure) => Ok(Answer::Refused(failure)),
            Err(_) => bail!("{api} answers {status}: not a Weir of this version"),
        }
    }

    /// The status, and the rest of the connection, which is the body.
    fn begin_download(&self, path: &str) -> anyhow::Result<(u16, impl Read)> {
        let mut stream = self.api.connect(self.trust.as_ref())?;
        // Of HTTP/1.0 a body of unknown length comes as it is, and ends with the connection.
        let (host, account) = (self.api.host(), &self.account);
        let request =
            format!("POST {path} HTTP/1.0\r\nHost: {host}\r\n{account}Content-Length: 0\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = reader.by_ref().take(LARGEST_LINE).read_line(&mut head)?;
            if read == 0 || head.len() as u64 > LARGEST_LINE {
                bail!("not HTTP");
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.context("not HTTP")?, reader))
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> anyhow::Result<(u16, String)> {
        let host = self.api.host();
        let mut stream = self.api.connect(self.trust.as_ref())?;
        let account = &self.account;
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{account}");
        if let Some(body) = body {
            let length = body.len();
            request.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {length}\r\n"
            ));
        }
        request.push_str("\r\n");
        request.push_str(body.unwrap_or_default());
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.take(LARGEST).read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("not HTTP")?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.context("not HTTP")?, body.to_owned()))
    }
}

/// A name as a part of a path, whatever is in it: it may have been mistyped.
pub fn segment(name: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_:".contains(byte);
    name.bytes()
        .map(|byte| match is_plain(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}
