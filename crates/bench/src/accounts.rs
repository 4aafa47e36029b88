//! Clients of the REST interface that show tokens: requests at a steady rate, some with wrong tokens.
//!
//! There are two threads, one for each kind of token. Each request has its own connection, like requests of `weir ctl`.

use crate::Error;
use crate::cpus::Cpus;
use crate::measure::Collector;
use crate::plan::Setup;
use crate::rest;
use crate::system::Target;
use ::rest::Request;
use report::Better;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::{Value, json};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The longest time of a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most bytes of an answer that a client reads.
const MOST: u64 = 1 << 20;
/// Tenants that share the requests with valid tokens, so that no account sends more requests than Weir allows to one
/// account.
const ACCOUNTS: usize = 10;
/// Addresses that share the requests with wrong tokens, so that no address sends more requests than Weir allows to one
/// address.
const ADDRESSES: u8 = 5;

/// Requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Requests per second with a tenant's own token, about that tenant.
    pub valid: u32,
    /// Requests per second with tokens that Weir has never made.
    pub wrong: u32,
}

/// All clients of one run.
#[derive(Debug)]
pub(crate) struct Clients {
    requests: Requests,
    tenants: usize,
    cpus: Option<Cpus>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Answers>>,
    since: Instant,
}

/// The requests of one thread.
#[derive(Debug)]
struct Questions {
    api: SocketAddr,
    per_second: u32,
    expected: u16,
    /// The requests, which the thread sends one after the other, again and again.
    each: Vec<Question>,
}

#[derive(Debug)]
struct Question {
    path: String,
    token: String,
    from: Ipv4Addr,
}

#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    /// Answers with the status that the token must get.
    right: u64,
    other: u64,
    slowest: Duration,
}

impl Clients {
    pub(crate) fn new(requests: Requests, setup: &Setup) -> Self {
        Self {
            requests,
            tenants: setup.tenants,
            cpus: Cpus::of(setup),
            stop: Arc::default(),
            threads: Vec::new(),
            since: Instant::now(),
        }
    }

    /// Makes the tokens, and starts the requests of the clients.
    pub(crate) fn begin(&mut self, target: &Target) -> Result<(), Error> {
        let Some(api) = target.api else {
            return Err(Error::System("tokens need a REST interface: there is none".to_owned()));
        };
        let valid = (0..self.tenants.min(ACCOUNTS)).map(|tenant| {
            let token = token(api, tenant).map_err(Error::System)?;
            let path = format!("/api/v1/tenants/tenant{tenant}");
            Ok(Question { path, token, from: Ipv4Addr::LOCALHOST })
        });
        let valid = valid.collect::<Result<Vec<_>, Error>>()?;
        let wrong = (0..ADDRESSES).map(|number| Question {
            path: "/api/v1/tenants/tenant0".to_owned(),
            token: format!("weir_{number:064x}"),
            from: Ipv4Addr::new(127, 0, 1, number + 1),
        });
        let wrong = wrong.collect();
        self.since = Instant::now();
        for (per_second, expected, each) in
            [(self.requests.valid, 200, valid), (self.requests.wrong, 401, wrong)]
        {
            let questions = Questions { api, per_second, expected, each };
            let (stop, cpus) = (Arc::clone(&self.stop), self.cpus.clone());
            let ask = move || {
                // The clients run on the generator's CPU with a lower priority than the generator, because a client
                // must not use the CPUs of the system under test.
                if let Some(cpus) = cpus {
                    cpus.beside();
                }
                questions.ask(&stop)
            };
            let thread = Builder::new().name("bench-account".to_owned()).spawn(ask);
            self.threads.push(thread.map_err(Error::io("thread"))?);
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, collector: Option<&mut Collector>) {
        let threads = std::mem::take(&mut self.threads);
        self.stop.store(true, Ordering::Relaxed);
        // A thread that panicked has already printed its message.
        let answers: Vec<Answers> = threads.into_iter().filter_map(|it| it.join().ok()).collect();
        let seconds = self.since.elapsed().as_secs_f64().max(1e-3);
        let Some(collector) = collector else { return };
        let sum = |of: fn(&Answers) -> u64| answers.iter().map(of).sum::<u64>() as f64;
        let slowest = answers.iter().map(|answers| answers.slowest).max().unwrap_or_default();
        let mut sample = |name, unit, better, value| collector.sample(name, unit, better, value);
        sample("tokens_checked_per_s", "1/s", Better::Higher, sum(|it| it.right) / seconds);
        sample("requests_answered_otherwise", "", Better::Lower, sum(|it| it.other));
        sample("request_max_ms", "ms", Better::Lower, slowest.as_secs_f64() * 1e3);
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Questions {
    /// Sends requests at the stated rate. A request that is late is sent at once.
    fn ask(&self, stop: &AtomicBool) -> Answers {
        let mut answers = Answers::default();
        let since = Instant::now();
        let mut due = Duration::ZERO;
        for question in self.each.iter().cycle() {
            let Some(pause) = Duration::from_secs(1).checked_div(self.per_second) else { break };
            std::thread::sleep(due.saturating_sub(since.elapsed()));
            if stop.load(Ordering::Relaxed) {
                break;
            }
            due += pause;
            let asked = Instant::now();
            match question.ask(self.api) {
                Ok(status) if status == self.expected => answers.right += 1,
                _ => answers.other += 1,
            }
            answers.slowest = answers.slowest.max(asked.elapsed());
        }
        answers
    }
}

impl Question {
    fn ask(&self, api: SocketAddr) -> io::Result<u16> {
        let stream = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&stream, &SocketAddr::from((self.from, 0)))?;
        connect(&stream, &api)?;
        let stream = TcpStream::from(stream);
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let host = api.to_string();
        let request = Request::new("GET", &self.path, &host);
        let answer = ::rest::ask(stream, &Request { token: Some(&self.token), ..request })?;
        let status = answer.status;
        answer.text(MOST)?;
        Ok(status)
    }
}

/// A new token of a tenant.
fn token(api: SocketAddr, tenant: usize) -> Result<String, String> {
    let wish = json!({"role": "tenant", "tenant": format!("tenant{tenant}")});
    let (status, made) = rest::ask(api, "POST", "/api/v1/tokens", Some(&wish), PATIENCE)?;
    let token = made.get("token").and_then(Value::as_str);
    let token = token.ok_or_else(|| format!("no token is made: status {status}, {made}"))?;
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// The request carries the token, and the status separates right answers from other answers.
    #[test]
    fn http_replies_are_counted_by_status_and_requests_carry_the_token() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let api = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let server = std::thread::spawn(move || {
            let mut heads = Vec::new();
            for status in ["200 OK", "401 Unauthorized", "200 OK"] {
                let (mut stream, peer) = listener.accept().unwrap();
                let mut head = vec![0; 1024];
                let length = stream.read(&mut head).unwrap();
                heads.push((String::from_utf8_lossy(&head[..length]).into_owned(), peer.ip()));
                ends.store(heads.len() == 3, Ordering::Relaxed);
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).unwrap();
            }
            heads
        });
        let question = |token: &str, last| Question {
            path: "/it".to_owned(),
            token: token.to_owned(),
            from: Ipv4Addr::new(127, 0, 1, last),
        };
        let each = vec![question("a", 1), question("b", 2)];
        let questions = Questions { api, per_second: 1000, expected: 200, each };
        let answers = questions.ask(&stop);
        assert_eq!((answers.right, answers.other), (2, 1));
        let heads = server.join().unwrap();
        for ((head, from), (token, last)) in heads.iter().zip([("a", 1), ("b", 2), ("a", 1)]) {
            assert!(head.contains(&format!("Authorization: Bearer {token}\r\n")), "{head}");
            assert_eq!(*from, Ipv4Addr::new(127, 0, 1, last));
        }
    }
}
