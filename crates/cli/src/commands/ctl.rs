//! Shows the work of a running `weir serve` for its tenants, and changes tenants' networks, through the REST interface
//! (`weir ctl`).

mod backup;
mod client;
mod endpoint;
mod explain;
mod operator;
mod pin;
mod print;
mod printer;
mod token;

use crate::exit::Exit;
use anyhow::Context;
use channel::ServiceTrust;
use clap::{Args, Subcommand};
use client::{Client, segment};
use daemon::access::tokens::PREFIX;
use daemon::api::networks::Networks;
use daemon::networks::{
    BackupChange, Choice, Document, Ends, HostChange, LinkChange, NetworkView, NumberDocument,
    Operation, Outcome, PortChange, RouteDocument, SwitchChange, Target,
};
use endpoint::Endpoint;
use printer::Printer;
use serde::de::DeserializeOwned;
use std::io::Read;
use std::path::PathBuf;

/// Show tenants, switches and flow tables of a running `weir serve`, and change tenants' networks
///
/// Each change is one transaction: Weir makes the whole change, or refuses the change with the reasons. A port is
/// written as "DPID port NUMBER", or "DPID port LOCAL". Exit status 0: done; 1: refused, nothing was changed; 2: wrong
/// arguments; 3: no answer.
#[derive(Args)]
#[command(after_help = "\
Example:
  weir ctl tenants
  weir ctl flows red 00:00:00:00:00:00:00:01
  weir ctl flows red 1 --physical
  weir ctl why red
  weir ctl trace red 1 in_port=1,tcp,nw_src=10.1.0.1,nw_dst=10.1.0.2,tp_dst=80
  weir ctl networks
  weir ctl add red link '0xa1 port 2' '0xa2 port 2' --bandwidth 5Mbit --backup links --dry-run
  weir ctl stop red link '0xa1 port 2' '0xa2 port 2'
  weir ctl token create --role tenant --tenant red --expires 30d
  weir ctl show red --json | jq .network > red.json && weir ctl set red red.json

See docs/ctl.md and docs/networks.md.")]
pub struct Ctl {
    /// The address of the REST interface of `weir serve` ([listen] api): IP:PORT, https://HOST:PORT or unix:PATH
    /// [default: the environment variable WEIR_API, else the socket /run/weir/api.sock if it exists, else
    /// 127.0.0.1:8080]
    #[arg(long, value_name = "WHERE", global = true, conflicts_with = "config")]
    api: Option<Endpoint>,
    /// The configuration file of `weir serve`, with the address of the REST interface
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    account: Account,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

/// Who asks, and whom that one trusts.
#[derive(Args)]
struct Account {
    /// A file with the token of an account [default: the environment variable WEIR_TOKEN, else no account]
    #[arg(long, value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
    /// Certificates of the authority that signed Weir's certificate, PEM; https:// needs these
    #[arg(long, value_name = "FILE", global = true)]
    ca: Option<PathBuf>,
    /// The private key of a client's certificate, PEM
    #[arg(long, value_name = "FILE", global = true, requires = "certificate")]
    private_key: Option<PathBuf>,
    /// A client's certificate as the account, PEM
    #[arg(long, value_name = "FILE", global = true, requires = "private_key")]
    certificate: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// List all tenants
    Tenants,
    /// List all connected switches
    Switches,
    /// Print a tenant's flow table on a switch, as `ovs-ofctl --no-stats dump-flows` does
    Flows {
        /// The tenant
        tenant: String,
        /// A datapath id, as the tenant sees it or as the switch has it, or a name in [[switches]]
        switch: String,
        /// Print the rules on the switch for these entries
        #[arg(long)]
        physical: bool,
    },
    /// List the connections to tenants' controllers
    Controllers,
    /// List how many rules each tenant may have on each switch, and why
    Limits,
    /// List the numbers of refused requests, by tenant, switch and reason
    Refusals,
    /// Print the path of a packet, with the reasons, without sending a packet
    Trace {
        /// The tenant, whose names of the switch and the port are used; "any": a physical switch, with the packets of
        /// all tenants
        tenant: String,
        /// A datapath id, as the tenant sees it or as the switch has it, or a name in [[switches]]
        switch: String,
        /// The packet, in the syntax of `ovs-appctl ofproto/trace`; in_port is required
        flow: String,
    },
    /// Print a tenant's last refused requests, and why they were refused
    Why {
        /// The tenant
        tenant: String,
    },
    /// List all networks
    Networks,
    /// Show a tenant's network, and its place in the physical network
    Show {
        /// The tenant
        tenant: String,
    },
    /// Replace a tenant's network by the network in a JSON file ("-": stdin)
    Set {
        /// The tenant
        tenant: String,
        /// The file
        file: PathBuf,
        #[command(flatten)]
        how: How,
    },
    /// Make several changes at once, from a JSON file with an array of them ("-": stdin)
    Change {
        /// The tenant
        tenant: String,
        /// The file
        file: PathBuf,
        #[command(flatten)]
        how: How,
    },
    /// Add a part, or change an existing part: properties without an option stay the same
    Add {
        /// The tenant
        tenant: String,
        #[command(subcommand)]
        part: New,
    },
    /// Start a part: it forwards packets
    Start(One),
    /// Stop a part: it forwards no packets, and keeps its bandwidth and paths
    Stop(One),
    /// Remove a part
    Remove(One),
    /// Make, list and revoke the tokens of accounts
    Token {
        #[command(subcommand)]
        what: token::What,
    },
    /// List and remove pinned certificates of switches
    Pin {
        #[command(subcommand)]
        what: pin::What,
    },
    /// Write a backup of the present state, for `weir serve --restore`
    Backup {
        /// The file, which must not exist
        file: PathBuf,
    },
}

#[derive(Args)]
struct How {
    /// Print the effect of the change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
struct One {
    /// The tenant
    tenant: String,
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand)]
enum Part {
    /// All of the network
    Network {
        #[command(flatten)]
        how: How,
    },
    /// A switch
    Switch {
        /// Its virtual datapath id
        dpid: String,
        #[command(flatten)]
        how: How,
    },
    /// A port at the edge
    Port {
        /// The virtual port
        port: String,
        #[command(flatten)]
        how: How,
    },
    /// A link
    Link {
        /// One of its ports
        a: String,
        /// The other
        b: String,
        #[command(flatten)]
        how: How,
    },
    /// A host
    Host {
        /// Its hardware address
        mac: String,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Subcommand)]
enum New {
    /// A switch
    Switch {
        /// Its virtual datapath id
        dpid: String,
        /// The physical switches that it lies on; several make a big switch; a new one needs it
        #[arg(long, value_name = "DPID", value_delimiter = ',')]
        on: Option<Vec<String>>,
        /// Its description
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        how: How,
    },
    /// A port at the edge
    Port {
        /// The virtual port
        port: String,
        /// The physical port; a new one needs it
        #[arg(long, value_name = "PORT")]
        at: Option<String>,
        /// Its name, at most 15 bytes
        #[arg(long)]
        name: Option<String>,
        /// Whether other tenants have ports there too
        #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        shared: Option<bool>,
        #[command(flatten)]
        how: How,
    },
    /// A link
    Link {
        /// One of its ports
        a: String,
        /// The other
        b: String,
        /// Set aside for it in each direction, such as 5Mbit; 0bit is nothing [of a new one: 0bit]
        #[arg(long)]
        bandwidth: Option<String>,
        /// "shortest", "widest", or physical switches and ports with commas between them [of a new one: shortest]
        #[arg(long)]
        route: Option<String>,
        /// A second path stands by, which has none of these in common with the first [of a new one: none]
        #[arg(long, value_name = "WHAT")]
        backup: Option<Apart>,
        /// Whether it goes back to the first path when that is whole again [of a new one: false]
        #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        revert: Option<bool>,
        #[command(flatten)]
        how: How,
    },
    /// A host
    Host {
        /// Its hardware address
        mac: String,
        /// The virtual port; a new one needs it
        #[arg(long, value_name = "PORT")]
        at: Option<String>,
        /// Its address; may be given several times [of a new one: one of the network's block]
        #[arg(long, value_name = "IP")]
        address: Option<Vec<String>>,
        #[command(flatten)]
        how: How,
    },
    /// The block of the hosts' addresses
    Addresses {
        /// Such as 10.0.0.0/24
        block: String,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Apart {
    /// No second path
    None,
    /// A physical link
    Links,
    /// A physical link or switch
    Switches,
}

impl Ctl {
    pub fn run(self) -> anyhow::Result<Exit> {
        let endpoint = match endpoint(self.api, self.config)? {
            Ok(endpoint) => endpoint,
            Err(exit) => return Ok(exit),
        };
        let token = match self.account.token()? {
            Ok(token) => token,
            Err(wrong) => return Ok(Exit::usage(&wrong)),
        };
        if token.is_some() && endpoint.is_overheard() {
            let message =
                format!("{endpoint} is in plain text: a token is sent over https:// there");
            return Ok(Exit::usage(&message));
        }
        if let (Endpoint::Tls(host, _), None) = (&endpoint, &self.account.ca) {
            return Ok(Exit::usage(&format!("--ca FILE has to say who signs for {host}")));
        }
        let client = Client::new(endpoint, self.account.trust(), token);
        let printer = Printer { json: self.json };
        match self.command {
            Command::Tenants => operator::tenants(&printer, &client),
            Command::Switches => operator::switches(&printer, &client),
            Command::Flows { tenant, switch, physical } => {
                operator::flows(&printer, &client, &tenant, &switch, physical)
            }
            Command::Controllers => operator::controllers(&printer, &client),
            Command::Limits => operator::limits(&printer, &client),
            Command::Refusals => operator::refusals(&printer, &client),
            Command::Trace { tenant, switch, flow } => {
                explain::trace(&printer, &client, &tenant, &switch, &flow)
            }
            Command::Why { tenant } => explain::why(&printer, &client, &tenant),
            Command::Networks => {
                printer.found(client.get("/api/v1/networks")?, |out, all: &Networks| {
                    print::networks(out, &all.networks)?;
                    print::set_aside(out, &all.set_aside)
                })
            }
            Command::Show { tenant } => {
                let path = path(&tenant, "", false);
                printer.found(client.get(&path)?, |out, one: &NetworkView| print::network(out, one))
            }
            Command::Set { tenant, file, how } => {
                let document: Document = match read(&file)? {
                    Ok(document) => document,
                    Err(wrong) => return Ok(Exit::usage(&wrong)),
                };
                let path = path(&tenant, "", how.dry_run);
                printer.found(client.send("PUT", &path, &document)?, print::outcome)
            }
            Command::Change { tenant, file, how } => {
                let operations: Vec<Operation> = match read(&file)? {
                    Ok(operations) => operations,
                    Err(wrong) => return Ok(Exit::usage(&wrong)),
                };
                change(&printer, &client, &tenant, &operations, how.dry_run)
            }
            Command::Add { tenant, part } => {
                let (operation, how) = part.operation();
                change(&printer, &client, &tenant, &[operation], how.dry_run)
            }
            Command::Start(one) => change_one(&printer, &client, one, Operation::Start),
            Command::Stop(one) => change_one(&printer, &client, one, Operation::Stop),
            Command::Remove(one) => change_one(&printer, &client, one, Operation::Remove),
            Command::Token { what } => token::run(&printer, &client, what),
            Command::Pin { what } => pin::run(&printer, &client, what),
            Command::Backup { file } => backup::backup(&client, &file),
        }
    }
}

impl Account {
    /// The token. The inner error is the reason why the text is no token.
    fn token(&self) -> anyhow::Result<Result<Option<String>, String>> {
        let (text, place) = match (&self.token_file, std::env::var(TOKEN)) {
            (Some(file), _) => {
                let text = std::fs::read_to_string(file);
                (text.with_context(|| format!("cannot read {}", file.display()))?, "--token-file")
            }
            (None, Ok(text)) if !text.is_empty() => (text, TOKEN),
            _ => return Ok(Ok(None)),
        };
        // The token becomes a part of a header.
        let text = text.trim();
        let is_token = text.starts_with(PREFIX) && text.bytes().all(|c| c.is_ascii_graphic());
        Ok(match is_token {
            true => Ok(Some(text.to_owned())),
            false => Err(format!("{place} holds no token of Weir's, which begins with {PREFIX}")),
        })
    }

    fn trust(&self) -> Option<ServiceTrust> {
        let identity = self.private_key.clone().zip(self.certificate.clone());
        Some(ServiceTrust { ca_certificate: self.ca.clone()?, identity })
    }
}

impl Part {
    fn target(self) -> (Target, How) {
        match self {
            Part::Network { how } => (Target::Network, how),
            Part::Switch { dpid, how } => (Target::Switch(dpid), how),
            Part::Port { port, how } => (Target::Port(port), how),
            Part::Link { a, b, how } => (Target::Link(Ends([a, b])), how),
            Part::Host { mac, how } => (Target::Host(mac), how),
        }
    }
}

impl New {
    fn operation(self) -> (Operation, How) {
        // Only the commands start and stop change this value.
        let started = None;
        match self {
            New::Switch { dpid, on, name, how } => {
                let switch = SwitchChange { dpid, name, on, routes: None, started };
                (Operation::ChangeSwitch(switch), how)
            }
            New::Port { port, at, name, shared, how } => {
                // Weir checks the port, and its reply has the reason for a refused port.
                let (switch, number) = port.rsplit_once(" port ").unwrap_or((port.as_str(), ""));
                let number = match number.trim() {
                    name if name.eq_ignore_ascii_case("LOCAL") => NumberDocument::Name(name.into()),
                    number => NumberDocument::Number(number.parse().unwrap_or(0)),
                };
                let switch = switch.to_owned();
                let port = PortChange { switch, number, name, at, shared, started };
                (Operation::ChangePort(port), how)
            }
            New::Link { a, b, bandwidth, route, backup, revert, how } => {
                let route = route.map(|route| match route.as_str() {
                    "shortest" => RouteDocument::Found(Choice::Shortest),
                    "widest" => RouteDocument::Found(Choice::Widest),
                    given => {
                        RouteDocument::Given(given.split(',').map(|it| it.trim().into()).collect())
                    }
                });
                let backup = backup.map(|apart| match apart {
                    Apart::None => BackupChange::None,
                    Apart::Links => BackupChange::Links,
                    Apart::Switches => BackupChange::Switches,
                });
                let between = [a, b];
                let link = LinkChange { between, bandwidth, route, backup, revert, started };
                (Operation::ChangeLink(link), how)
            }
            New::Host { mac, at, address, how } => {
                (Operation::ChangeHost(HostChange { mac, address, at }), how)
            }
            New::Addresses { block, how } => (Operation::SetAddresses(Some(block)), how),
        }
    }
}

fn path(tenant: &str, rest: &str, dry_run: bool) -> String {
    let how = if dry_run { "?dry_run=true" } else { "" };
    format!("/api/v1/networks/{}{rest}{how}", segment(tenant))
}

/// The address of Weir's REST interface. The inner error is an exit status. The reason is already printed.
fn endpoint(
    api: Option<Endpoint>,
    config: Option<PathBuf>,
) -> anyhow::Result<Result<Endpoint, Exit>> {
    if let Some(api) = api {
        return Ok(Ok(api));
    }
    if let Some(file) = config {
        return Ok(match daemon::config::load(&file) {
            Ok(config) => Endpoint::of(&config.listen.api).ok_or_else(|| {
                Exit::usage(&format!(
                    "{}: [listen] api is off: there is nobody to ask",
                    file.display()
                ))
            }),
            Err(error) => Err(Exit::configuration(&error)),
        });
    }
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => {
            Ok(text.parse().map_err(|error| Exit::usage(&format!("{VARIABLE}={text}: {error}"))))
        }
        Err(std::env::VarError::NotUnicode(_)) => {
            Ok(Err(Exit::usage(&format!("{VARIABLE} in the environment is not UTF-8"))))
        }
        _ => Ok(Ok(Endpoint::default())),
    }
}

/// The environment variable with the address of Weir's REST interface.
const VARIABLE: &str = "WEIR_API";
/// The environment variable with the token of an account.
const TOKEN: &str = "WEIR_TOKEN";

/// Reads a JSON file. The inner error is the error in the text of the file.
fn read<T: DeserializeOwned>(file: &PathBuf) -> anyhow::Result<Result<T, String>> {
    let mut text = String::new();
    let name = file.display();
    if file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
    } else {
        text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    }
    Ok(serde_json::from_str(&text).map_err(|error| format!("{name}: {error}")))
}

/// Sends one change of a tenant's network.
fn change_one(
    printer: &Printer,
    client: &Client,
    one: One,
    what: fn(Target) -> Operation,
) -> anyhow::Result<Exit> {
    let (target, how) = one.part.target();
    change(printer, client, &one.tenant, &[what(target)], how.dry_run)
}

fn change(
    printer: &Printer,
    client: &Client,
    tenant: &str,
    operations: &[Operation],
    dry_run: bool,
) -> anyhow::Result<Exit> {
    let path = path(tenant, "/changes", dry_run);
    printer.found(client.send("POST", &path, &operations)?, |out, outcome: &Outcome| {
        print::outcome(out, outcome)
    })
}
