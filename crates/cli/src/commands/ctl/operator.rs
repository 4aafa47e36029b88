//! Prints the state of slices for an operator: tenants, switches, controllers, refusals, and flow tables.

use super::client::{Answer, Client, segment};
use super::print::Columns;
use super::printer::{Printer, no_answer};
use crate::exit::Exit;
use anyhow::Context;
use daemon::api::flows::Flows;
use daemon::api::limits::{Limits, SheetOf};
use daemon::api::troubles::{Controllers, Refusals};
use daemon::api::view::{Contact, Counts};
use daemon::api::{Switches, Tenants};
use std::io::{Result, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub fn tenants(printer: &Printer, client: &Client) -> anyhow::Result<Exit> {
    printer.found(client.get("/api/v1/tenants")?, |out, all: &Tenants| {
        let head = ["TENANT", "WEIGHT", "CONTROLLERS", "SWITCHES", "FLOWS", "RULES", "REFUSED"];
        let mut rows = Columns::new(&head, 1);
        for tenant in &all.tenants {
            let counts: Vec<&Counts> = tenant.switches.iter().map(|it| &it.counts).collect();
            let contacts = || counts.iter().flat_map(|it| &it.controllers);
            let up = contacts().filter(|contact| contact.connected).count();
            let sum = |of: fn(&Counts) -> u64| counts.iter().map(|it| of(it)).sum::<u64>();
            rows.row([
                tenant.name.clone(),
                tenant.weight.to_string(),
                format!("{up} of {}", contacts().count()),
                counts.len().to_string(),
                sum(|it| it.flows).to_string(),
                sum(|it| it.entries).to_string(),
                sum(|it| it.refused).to_string(),
            ]);
        }
        rows.write(out, "no tenants are configured")
    })
}

pub fn switches(printer: &Printer, client: &Client) -> anyhow::Result<Exit> {
    printer.found(client.get("/api/v1/switches")?, |out, all: &Switches| {
        let head = ["SWITCH", "NAME", "OPENFLOW", "TENANTS", "FLOWS", "RULES", "REFUSED"];
        let mut rows = Columns::new(&head, 2);
        for switch in &all.switches {
            let sum = |of: fn(&Counts) -> u64| {
                switch.tenants.iter().map(|it| of(&it.counts)).sum::<u64>().to_string()
            };
            let (id, name) = match &switch.seen_as {
                Some(seen_as) => (seen_as, "(big switch)"),
                None => (&switch.dpid, switch.name.as_deref().unwrap_or("-")),
            };
            rows.row([
                id.clone(),
                name.to_owned(),
                switch.openflow.clone(),
                switch.tenants.len().to_string(),
                sum(|it| it.flows),
                sum(|it| it.entries),
                sum(|it| it.refused),
            ]);
        }
        rows.write(out, "no switches are connected")
    })
}

pub fn controllers(printer: &Printer, client: &Client) -> anyhow::Result<Exit> {
    printer.found(client.get("/api/v1/controllers")?, |out, all: &Controllers| {
        let mut rows = Columns::new(&["TENANT", "SWITCH", "CONTROLLER", "STATE"], 4);
        for controller in &all.controllers {
            let contact = &controller.contact;
            let state = if contact.connected { "connected" } else { "no connection" };
            rows.row([
                controller.tenant.clone(),
                controller.switch.clone(),
                contact.address.clone(),
                state.to_owned(),
            ]);
            if let Some(trouble) = trouble(contact) {
                rows.note(trouble);
            }
        }
        rows.write(out, "no controllers are dialled: no switch of theirs is connected")
    })
}

/// The reason why a connection is down.
fn trouble(contact: &Contact) -> Option<String> {
    let error = contact.last_error.as_ref().filter(|_| !contact.connected)?;
    let at = UNIX_EPOCH + Duration::from_millis(contact.last_error_ms.unwrap_or(0));
    let ago = SystemTime::now().duration_since(at).map_or(0, |ago| ago.as_secs());
    Some(format!("{error}; {ago} s ago, {} attempts", contact.dials))
}

pub fn limits(printer: &Printer, client: &Client) -> anyhow::Result<Exit> {
    printer.found(client.get("/api/v1/limits")?, |out, all: &Limits| {
        let mut rows = Columns::new(&["TENANT", "SWITCH", "TABLES", "HAS", "MAY HAVE"], 3);
        for one in &all.limits {
            rows.row([
                one.tenant.clone(),
                one.switch.clone(),
                one.tables.clone(),
                one.rules.to_string(),
                one.may.to_string(),
            ]);
            rows.note(one.why.clone());
        }
        rows.write(out, "no switch is connected of which a tenant has a part")?;
        if !all.rates.is_empty() {
            let mut rows =
                Columns::new(&["TENANT", "SWITCH", "MESSAGES", "PER SECOND", "AT ONCE"], 3);
            for one in &all.rates {
                rows.row([
                    one.tenant.clone(),
                    one.switch.clone(),
                    one.messages.clone(),
                    format!("{:.1}", one.per_second),
                    one.burst.to_string(),
                ]);
                rows.note(one.why.clone());
            }
            writeln!(out)?;
            rows.write(out, "")?;
        }
        for sheet in all.datasheets.iter().filter(|sheet| !sheet.used) {
            let SheetOf { switch, file, why, .. } = sheet;
            writeln!(out, "switch {switch}: the data sheet {file} is not used: {why}")?;
        }
        Ok(())
    })
}

pub fn refusals(printer: &Printer, client: &Client) -> anyhow::Result<Exit> {
    printer.found(client.get("/api/v1/refusals")?, |out, all: &Refusals| {
        let mut rows = Columns::new(&["TENANT", "SWITCH", "WHAT", "COUNT"], 3);
        for (what, refused) in [("", &all.requests), ("packet_in ", &all.packet_ins)] {
            for one in refused {
                rows.row([
                    one.tenant.clone(),
                    one.switch.clone(),
                    format!("{what}{}", one.reason),
                    one.count.to_string(),
                ]);
            }
        }
        for one in &all.connections {
            let (what, nobody) =
                (format!("{} connection {}", one.peer, one.reason), "-".to_owned());
            rows.row([nobody.clone(), nobody, what, one.count.to_string()]);
        }
        rows.write(out, "nothing was refused")
    })
}

/// Prints a flow table page by page. Text is written after each page; JSON is one document.
pub fn flows(
    printer: &Printer,
    client: &Client,
    tenant: &str,
    switch: &str,
    physical: bool,
) -> anyhow::Result<Exit> {
    let side = if physical { "switch" } else { "tenant" };
    let path = format!(
        "/api/v1/tenants/{}/switches/{}/flows?side={side}",
        segment(tenant),
        segment(switch)
    );
    let (mut next, mut whole): (_, Option<Flows>) = (None::<String>, None);
    let mut out = std::io::stdout().lock();
    loop {
        let after = next.map(|next| format!("&after={next}")).unwrap_or_default();
        let text = match client.get(&format!("{path}{after}"))? {
            Answer::Done(text) => text,
            refused @ Answer::Refused(_) => return printer.found(refused, no_answer),
        };
        let mut page: Flows = serde_json::from_str(&text).context("an answer of another Weir")?;
        next = page.next.take();
        match (&mut whole, printer.json) {
            (Some(whole), true) => whole.flows.append(&mut page.flows),
            (None, true) => whole = Some(page),
            (_, false) => write_flows(&mut out, &page)?,
        }
        if next.is_none() {
            break;
        }
    }
    if let Some(whole) = whole {
        writeln!(out, "{:#}", serde_json::to_value(&whole)?)?;
    }
    Ok(Exit::Success)
}

/// Writes the flows with the blank before each line, like `ovs-ofctl`.
fn write_flows(out: &mut dyn Write, page: &Flows) -> Result<()> {
    page.flows.iter().try_for_each(|flow| writeln!(out, " {}", flow.text))
}
