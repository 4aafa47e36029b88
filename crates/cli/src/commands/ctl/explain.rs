//! Explains the reasons of refused requests, and the path of a packet.

use super::client::{Client, segment};
use super::printer::Printer;
use crate::exit::Exit;
use daemon::api::trace::{Trace, wrapped};
use daemon::api::why::Why;
use std::io::{Result, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Prints a line for each refused request. The next lines have the refusing program and the reason.
pub fn why(printer: &Printer, client: &Client, tenant: &str) -> anyhow::Result<Exit> {
    let path = format!("/api/v1/tenants/{}/why", segment(tenant));
    printer.found(client.get(&path)?, |out, why: &Why| {
        for refused in &why.refusals {
            let at = UNIX_EPOCH + Duration::from_millis(refused.time_ms);
            let ago = SystemTime::now().duration_since(at).map_or(0, |ago| ago.as_secs());
            writeln!(out, "{ago} s ago, switch {}, xid {}", refused.switch, refused.xid)?;
            write(out, &wrapped(2, &refused.request))?;
            let by = if refused.by == "weir" { "Weir refused: " } else { "" };
            write(out, &wrapped(2, &format!("{}: {by}{}", refused.error, refused.reason)))?;
        }
        if why.refusals.is_empty() {
            writeln!(out, "nothing was refused since Weir started")?;
        }
        Ok(())
    })
}

/// The tenant's place in a request about a packet of any tenant.
const ANY: &str = "any";

/// Prints the path of a packet.
pub fn trace(
    printer: &Printer,
    client: &Client,
    tenant: &str,
    switch: &str,
    flow: &str,
) -> anyhow::Result<Exit> {
    let (switch, flow) = (segment(switch), segment(flow));
    let path = match tenant {
        ANY => format!("/api/v1/switches/{}/trace/{}", switch, flow),
        tenant => {
            format!("/api/v1/tenants/{}/switches/{}/trace/{}", segment(tenant), switch, flow)
        }
    };
    printer.found(client.get(&path)?, |out, trace: &Trace| write(out, &trace.text))
}

fn write(out: &mut dyn Write, lines: &[String]) -> Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}
