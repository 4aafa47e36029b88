//! Lists and removes pinned certificates of switches (`weir ctl pin`).

use super::client::Client;
use super::print::Columns;
use super::printer::Printer;
use crate::exit::Exit;
use clap::Subcommand;
use daemon::api::pins::List;
use daemon::dpid::Dpid;
use daemon::pins::Pin;

#[derive(Subcommand)]
pub enum What {
    /// List all pins
    List,
    /// Remove a pin: the next certificate with which the switch connects is pinned
    Remove {
        /// The datapath id
        switch: Dpid,
    },
}

pub fn run(printer: &Printer, client: &Client, what: What) -> anyhow::Result<Exit> {
    match what {
        What::List => printer.found(client.get("/api/v1/pins")?, |out, all: &List| {
            let mut rows = Columns::new(&["SWITCH", "CERTIFICATE"], 2);
            for pin in &all.pins {
                rows.row([pin.dpid.clone(), pin.certificate.clone()]);
            }
            rows.write(out, "there are no pins")
        }),
        What::Remove { switch } => {
            let path = format!("/api/v1/pins/{switch}");
            printer.found(client.delete(&path)?, |out, pin: &Pin| {
                writeln!(out, "the pin of {} is removed", pin.dpid)
            })
        }
    }
}
