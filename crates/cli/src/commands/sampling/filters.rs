//! Prints the `tc` commands of one server for a plan (`weir sampling filters`).

use super::text::read;
use crate::exit::Exit;
use agent::Tenant;
use agent::mirror::{self, Destination};
use anyhow::Context;
use sampling::Error;
use serde::Deserialize;
use std::io::Write;
use std::path::PathBuf;

/// Print the `tc` commands that apply a plan on one server
///
/// Each packet that the interface receives is cloned at most once: to the interface of this server's own sampler, or to
/// the VXLAN interface of another server. No packet is mirrored twice: filters do not match VXLAN datagrams, and a
/// destination that is itself sampled is refused.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir sampling filters plan/plan.json --server rack1 --interface vnet0 \\
      --way rack1=capture0 --way rack2=vxlan2 | tc -batch -
  weir sampling sample vxlan1 --stands-for 4.9 --sub-agent 1 --collector 192.0.2.1
  weir sampling filters --clear --interface vnet0 | tc -batch -")]
pub struct Filters {
    /// The plan, as `weir sampling plan --json` prints it
    #[arg(value_name = "PLAN", required_unless_present = "clear")]
    plan: Option<PathBuf>,
    /// The server whose packets the interface receives
    #[arg(long, value_name = "NAME", required_unless_present = "clear")]
    server: Option<String>,
    /// The interface that receives the packets
    #[arg(long, value_name = "DEVICE")]
    interface: String,
    /// A server that processes samples and the interface to it, also for the server itself; may be repeated
    #[arg(long = "way", value_name = "SERVER=DEVICE", value_parser = way)]
    ways: Vec<(String, String)>,
    /// A tenant and its IPv4 network, if the plan has rates per tenant; may be repeated
    #[arg(long = "tenant", value_name = "NAME=NETWORK/PREFIX", value_parser = str::parse::<Tenant>)]
    tenants: Vec<Tenant>,
    /// Another sampled interface of this server, which may not be a destination
    #[arg(long = "sampled", value_name = "DEVICE")]
    sampled: Vec<String>,
    /// Print the commands that remove the filters
    #[arg(long, conflicts_with_all = ["plan", "server", "ways", "sampled", "tenants"])]
    clear: bool,
}

/// The fields of a plan that the filters need.
#[derive(Deserialize)]
struct Plan {
    flows: Vec<Flow>,
}

#[derive(Deserialize)]
struct Flow {
    from: String,
    at: String,
    rate: f64,
    tenant: Option<String>,
}

impl Filters {
    pub fn run(self) -> anyhow::Result<Exit> {
        let script = if self.clear { mirror::clear(&self.interface)? } else { self.script()? };
        write!(std::io::stdout().lock(), "{script}")?;
        Ok(Exit::Success)
    }

    fn script(&self) -> anyhow::Result<String> {
        let (Some(path), Some(server)) = (&self.plan, &self.server) else {
            anyhow::bail!("no plan is given");
        };
        let shown = || path.display().to_string();
        let plan: Plan = serde_json::from_str(&read(path)?)
            .map_err(|error| wrong(shown(), format!("no plan: {error}")))?;
        let mut destinations = Vec::new();
        for flow in plan.flows.iter().filter(|flow| flow.from == *server) {
            let network = |name: &String| {
                let tenant = self.tenants.iter().find(|tenant| tenant.name == *name);
                tenant.map(|tenant| (tenant.network, tenant.prefix)).ok_or_else(|| {
                    let message = format!(
                        "the plan samples {name:?} at a rate of its own, and no network of it is given"
                    );
                    wrong("--tenant".to_owned(), message)
                })
            };
            let tenant = flow.tenant.as_ref().map(network).transpose()?;
            let way = self.ways.iter().find(|(at, _)| *at == flow.at);
            let (_, interface) = way.ok_or_else(|| {
                wrong(
                    "--way".to_owned(),
                    format!(
                        "the plan has {server:?} sampled at {:?}, to which none leads",
                        flow.at
                    ),
                )
            })?;
            destinations.push(Destination {
                share: flow.rate,
                tenant,
                interface: interface.clone(),
            });
        }
        let mut sampled: Vec<&str> = self.sampled.iter().map(String::as_str).collect();
        sampled.push(&self.interface);
        mirror::script(&self.interface, &destinations, &sampled).with_context(shown)
    }
}

fn wrong(place: String, message: String) -> Error {
    Error::Input { place, message }
}

fn way(text: &str) -> Result<(String, String), String> {
    let way =
        text.split_once('=').filter(|(server, device)| !server.is_empty() && !device.is_empty());
    way.map(|(server, device)| (server.to_owned(), device.to_owned()))
        .ok_or_else(|| "not a way such as rack2=vxlan2".to_owned())
}
