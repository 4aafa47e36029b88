//! Measures the throughput between two hosts with `iperf3`.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::command::{find_program, run};
use crate::error::{Error, Result};
use crate::missing::Missing;
use crate::topology::Rate;

/// The options of a measurement.
#[derive(Clone, Debug)]
pub struct IperfOptions {
    /// The duration of the transmission, in whole seconds, at least one.
    pub duration: Duration,
    /// The rate of UDP. `None` means TCP at full speed.
    pub udp: Option<Rate>,
}

impl Default for IperfOptions {
    /// Five seconds of TCP.
    fn default() -> Self {
        IperfOptions { duration: Duration::from_secs(5), udp: None }
    }
}

/// The results of a measurement.
#[derive(Clone, Debug)]
pub struct IperfReport {
    /// Bits per second that the sender sent.
    pub sent: f64,
    /// Bits per second that the receiver received.
    pub received: f64,
    /// TCP segments that were sent again; `None` for UDP.
    pub retransmits: Option<u64>,
    /// Share of the UDP datagrams that were lost, 0 to 1; `None` for TCP.
    pub loss: Option<f64>,
    /// The whole output of `iperf3 --json`.
    pub json: serde_json::Value,
}

pub(crate) fn measure(
    mut client: Command,
    server: Command,
    address: Ipv4Addr,
    options: &IperfOptions,
) -> Result<IperfReport> {
    if find_program("iperf3").is_none() {
        return Err(Error::Missing(vec![Missing::program("iperf3", "iperf3")]));
    }
    let _server = Server::start(server)?;
    let seconds = options.duration.as_secs().max(1).to_string();
    client.stdin(Stdio::null()).env("LC_ALL", "C");
    client.args(["--json", "--client", &address.to_string(), "--time", &seconds]);
    client.args(["--connect-timeout", "5000"]);
    if let Some(rate) = options.udp {
        client.args(["--udp", "--bitrate", &rate.bits_per_second().to_string()]);
    }
    let printed = run(&mut client)?;
    read_report(&printed).ok_or_else(|| Error::Command {
        command: "iperf3 --json".to_owned(),
        status: "success".to_owned(),
        stderr: format!(
            "its report is not understood: {}",
            printed.chars().take(300).collect::<String>()
        ),
    })
}

fn read_report(printed: &str) -> Option<IperfReport> {
    let json: serde_json::Value = serde_json::from_str(printed).ok()?;
    let end = json.get("end")?;
    let report = match end.get("sum_sent").filter(|_| end.get("sum").is_none()) {
        Some(sent) => IperfReport {
            sent: sent.get("bits_per_second")?.as_f64()?,
            received: end.get("sum_received")?.get("bits_per_second")?.as_f64()?,
            retransmits: sent.get("retransmits").and_then(serde_json::Value::as_u64),
            loss: None,
            json: json.clone(),
        },
        None => {
            let sum = end.get("sum")?;
            let sent = sum.get("bits_per_second")?.as_f64()?;
            let loss = sum.get("lost_percent")?.as_f64()? / 100.0;
            IperfReport {
                sent,
                received: sent * (1.0 - loss),
                retransmits: None,
                loss: Some(loss),
                json: json.clone(),
            }
        }
    };
    Some(report)
}

/// A server for one measurement. Dropping the value ends the server.
struct Server {
    child: Child,
}

impl Server {
    /// Starts the server and waits until the server prints that it listens.
    fn start(mut command: Command) -> Result<Server> {
        command.args(["--server", "--one-off", "--forceflush"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(Error::io("start iperf3"))?;
        let stdout = child.stdout.take();
        let server = Server { child };
        let mut lines = stdout.into_iter().flat_map(|pipe| BufReader::new(pipe).lines());
        let mut said = String::new();
        for line in &mut lines {
            let line = line.map_err(Error::io("read from iperf3"))?;
            if line.contains("Server listening") {
                // The server continues to print, and would block if its output were not read.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(server);
            }
            said.push_str(&line);
        }
        Err(Error::Command {
            command: "iperf3 --server".to_owned(),
            status: "it ended".to_owned(),
            stderr: said,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error is ignored, because the server may have already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
