//! A real headless browser, driven by WebDriver: Chromium and its driver.
//!
//! The browser resolves no names and reaches no other host. The requests of pages and the messages on the console are
//! recorded.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::program::Program;
use super::{PATIENCE, eventually, free_port};

/// The arguments for a headless browser that opens no connections by itself.
const ARGUMENTS: &[&str] = &[
    "--headless=new",
    // Tests run as root, where Chromium has no sandbox.
    "--no-sandbox",
    // Chromium ends when its driver ends, for any reason.
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// The error of requests that Chromium cancels because an interface of this machine is added or removed.
const NETWORK_CHANGED: &str = "net::ERR_NETWORK_CHANGED";

/// The colour scheme that the browser requests from pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    Light,
    Dark,
}

pub struct Browser {
    driver: SocketAddr,
    session: String,
    // This field is dropped last, because the driver closes the session.
    _process: Program,
}

/// A request that a page has made, and the bytes of the response on the wire.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub method: String,
    pub url: String,
    pub bytes: u64,
}

impl Browser {
    pub fn start() -> Browser {
        let driver = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let port = format!("--port={}", driver.port());
        let process = Program::start("chromedriver", "chromedriver", &[&port, "--log-level=OFF"]);
        eventually("the driver answers", || {
            command(driver, "GET", "/status", None).is_ok_and(|status| status["ready"] == true)
        });
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"args": ARGUMENTS},
        }}});
        let made = command(driver, "POST", "/session", Some(&wanted))
            .unwrap_or_else(|error| panic!("no browser: {error}"));
        let session = made["sessionId"].as_str().expect("a session").to_owned();
        Browser { driver, session, _process: process }
    }

    /// Opens a page. When an interface of this machine is added or removed, as in other tests, Chromium cancels the
    /// requests for the page and its files. Then the page is loaded again.
    #[track_caller]
    pub fn go(&self, url: &str) {
        let deadline = std::time::Instant::now() + PATIENCE;
        let files = "return performance.getEntriesByType('resource')
            .filter((it) => it.responseStatus === 0 && it.initiatorType !== 'fetch').length";
        let mut loaded = self.command("POST", "/url", &json!({"url": url}));
        loop {
            match loaded {
                Ok(_) if self.run(files) == 0 => return,
                Err(error) if !error.contains(NETWORK_CHANGED) => panic!("{url}: {error}"),
                _ => {}
            }
            assert!(std::time::Instant::now() < deadline, "not loaded: {:#}", self.files());
            // Opening a URL with a # again would load nothing.
            loaded = self.command("POST", "/refresh", &json!({}));
        }
    }

    /// Returns the result of a script.
    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Returns all visible text of the page.
    pub fn text(&self) -> String {
        let text = self.run("return document.body.innerText");
        text.as_str().unwrap_or_default().replace(['\u{202f}', '\u{a0}'], " ")
    }

    #[track_caller]
    pub fn shows(&self, words: &str) {
        let has = || self.text().contains(words);
        let deadline = std::time::Instant::now() + PATIENCE;
        while !has() {
            if std::time::Instant::now() >= deadline {
                let (text, complaints, files) = (self.text(), self.complaints(), self.files());
                panic!("no {words:?} in:\n{text}\ncomplaints: {complaints:#?}\nfiles: {files:#}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The files that the page has loaded, each with the status of the answer and the milliseconds that the file took.
    fn files(&self) -> Value {
        self.run(
            "return performance.getEntriesByType('resource')
                .map((it) => `${it.name}: ${it.responseStatus}, ${Math.round(it.duration)} ms`)",
        )
    }

    /// Clicks the first element of a selector, as a person does.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        self.ask("POST", &format!("/element/{}/click", self.find(selector)), &json!({}));
    }

    /// Types into the first element of a selector.
    #[track_caller]
    pub fn write(&self, selector: &str, text: &str) {
        let path = format!("/element/{}/value", self.find(selector));
        self.ask("POST", &path, &json!({"text": text}));
    }

    #[track_caller]
    fn find(&self, selector: &str) -> String {
        let asked = json!({"using": "css selector", "value": selector});
        let mut found = Value::Null;
        eventually(&format!("there is {selector}"), || {
            let all = self.ask("POST", "/elements", &asked);
            found = all[0].clone();
            found.is_object()
        });
        let id = found.as_object().and_then(|element| element.values().next());
        id.and_then(Value::as_str).expect("an element").to_owned()
    }

    /// Presses keys in turn at the focused element.
    pub fn press(&self, keys: &[&str]) {
        let mut actions = Vec::new();
        for key in keys {
            actions.push(json!({"type": "keyDown", "value": key}));
            actions.push(json!({"type": "keyUp", "value": key}));
        }
        let source = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.ask("POST", "/actions", &json!({"actions": [source]}));
    }

    /// Sets the size of the window. A narrow window is a phone.
    pub fn resize(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
    }

    pub fn colours(&self, colours: Colours) {
        let value = if colours == Colours::Dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// Empties the browser's cache: the browser requests all files of the next page.
    pub fn forget(&self) {
        self.devtools("Network.clearBrowserCache", &json!({}));
    }

    /// Returns a picture of the page as a PNG file in base64: the whole page, or the visible part.
    pub fn photograph(&self, is_whole: bool) -> String {
        let options = json!({"format": "png", "captureBeyondViewport": is_whole});
        let taken = self.devtools("Page.captureScreenshot", &options);
        taken["data"].as_str().expect("a picture").to_owned()
    }

    /// Returns errors and warnings on the console since the last call, except the requests that Chromium has cancelled
    /// because an interface has changed.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.ask("POST", "/se/log", &json!({"type": "browser"}));
        let lines = log.as_array().expect("a log").iter();
        let bad = lines.filter(|line| line["level"] == "SEVERE" || line["level"] == "WARNING");
        let messages = bad.map(|line| line["message"].as_str().unwrap_or_default().to_owned());
        messages.filter(|message| !message.ends_with(NETWORK_CHANGED)).collect()
    }

    /// Returns the requests since the last call.
    pub fn asked(&self) -> Vec<Asked> {
        let log = self.ask("POST", "/se/log", &json!({"type": "performance"}));
        let mut asked: Vec<(String, Asked)> = Vec::new();
        for line in log.as_array().expect("a log") {
            let line: Value = serde_json::from_str(line["message"].as_str().unwrap_or_default())
                .expect("JSON in the log");
            let (event, said) = (&line["message"]["method"], &line["message"]["params"]);
            let id = said["requestId"].as_str().unwrap_or_default().to_owned();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            if event == "Network.requestWillBeSent" {
                let (method, url) =
                    (text(&said["request"]["method"]), text(&said["request"]["url"]));
                asked.push((id, Asked { method, url, bytes: 0 }));
            } else if event == "Network.dataReceived" {
                let bytes = said["encodedDataLength"].as_u64().unwrap_or(0);
                if let Some((_, known)) = asked.iter_mut().find(|(known, _)| *known == id) {
                    known.bytes += bytes;
                }
            }
        }
        asked.into_iter().map(|(_, asked)| asked).collect()
    }

    fn devtools(&self, name: &str, parameters: &Value) -> Value {
        self.ask("POST", "/goog/cdp/execute", &json!({"cmd": name, "params": parameters}))
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        self.command(method, path, body).unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }

    fn command(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let path = format!("/session/{}{path}", self.session);
        command(self.driver, method, &path, Some(body))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = command(self.driver, "DELETE", &format!("/session/{}", self.session), None);
    }
}

/// Sends one WebDriver command. Returns an error as text.
fn command(
    driver: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, String> {
    let exchanged = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&driver, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = body.map(ToString::to_string).unwrap_or_default();
        let mut request = String::new();
        let _ = write!(
            request,
            "{method} {path} HTTP/1.1\r\nHost: {driver}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        // The driver keeps the connection open in spite of `Connection: close`.
        let mut stream = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while stream.read_line(&mut line)? > 2 {
            if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = said.trim().parse().map_err(std::io::Error::other)?;
            }
            line.clear();
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = exchanged().map_err(|error| error.to_string())?;
    let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
    let value = &answer["value"];
    match value["error"].as_str() {
        Some(error) => Err(format!("{error}: {}", value["message"])),
        None => Ok(value.clone()),
    }
}
