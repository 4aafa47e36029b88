//! Sends requests to a `weir serve` by TCP or by its socket, with one connection for each request.

use super::endpoint::{Endpoint, Stream};
use anyhow::{Context, bail};
use channel::ServiceTrust;
use daemon::api::Failure;
use rest::Request;
use serde::Serialize;
use std::io::Write;

/// The longest answer that the client reads, in bytes.
const LARGEST: u64 = 64 << 20;

pub struct Client {
    api: Endpoint,
    trust: Option<ServiceTrust>,
    /// The token of the account that sends the requests.
    token: Option<String>,
}

pub enum Answer {
    /// The request was carried out. The value is the body of the answer.
    Done(String),
    /// The request was understood and refused.
    Refused(Failure),
}

impl Client {
    /// Makes a client with a token, if there is a token.
    pub fn new(api: Endpoint, trust: Option<ServiceTrust>, token: Option<String>) -> Client {
        Client { api, trust, token }
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
        let (status, body) = self.exchange(method, path, body).with_context(|| no_answer(api))?;
        match status {
            200 => Ok(Answer::Done(body)),
            400..=499 | 503 => match serde_json::from_str(&body) {
                Ok(failure) => Ok(Answer::Refused(failure)),
                Err(_) => bail!("{api} answers {status}: not a Weir of this version"),
            },
            _ => bail!("{api} answers {status}: {body}"),
        }
    }

    /// Sends a POST request, and writes the body of the answer to `into` during the transfer.
    pub fn download(&self, path: &str, into: &mut impl Write) -> anyhow::Result<Answer> {
        let api = &self.api;
        let mut answer =
            self.begin(Request::new("POST", path, &api.host())).with_context(|| no_answer(api))?;
        if answer.status == 200 {
            std::io::copy(&mut answer.body, into).context("the answer cannot be taken")?;
            return Ok(Answer::Done(String::new()));
        }
        let status = answer.status;
        match serde_json::from_str(&answer.text(LARGEST)?) {
            Ok(failure) => Ok(Answer::Refused(failure)),
            Err(_) => bail!("{api} answers {status}: not a Weir of this version"),
        }
    }

    fn begin(&self, request: Request<'_>) -> anyhow::Result<rest::Answer<Box<dyn Stream>>> {
        let request = Request { token: self.token.as_deref(), ..request };
        Ok(rest::ask(self.api.connect(self.trust.as_ref())?, &request)?)
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> anyhow::Result<(u16, String)> {
        let host = self.api.host();
        let request = Request::new(method, path, &host);
        let request = body.map_or(request, |body| request.json(body));
        let answer = self.begin(request)?;
        Ok((answer.status, answer.text(LARGEST)?))
    }
}

fn no_answer(api: &Endpoint) -> String {
    format!("no answer from {api}: is `weir serve` running there, and [listen] api not off?")
}

/// Encodes a name as a part of a path. The name may contain any character, because a user typed the name.
pub fn segment(name: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_:".contains(byte);
    name.bytes()
        .map(|byte| match is_plain(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}
