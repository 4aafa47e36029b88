//! Reports the contents of data sheets, and whether a data sheet can belong to the switch for which
//! the file names it.

use std::collections::BTreeSet;

use super::{Checker, Severity, Topic};
use crate::config::Position;
use crate::dpid::Dpid;
use crate::sheets;

impl Checker<'_> {
    pub(super) fn sheets(&mut self) {
        let mut summarized = BTreeSet::new();
        let config = self.config;
        let of_all = config.datasheet.iter().map(|sheet| (Position::default(), None, sheet));
        let listed = config.switches.iter();
        let of_one = listed.filter_map(|it| Some((it.at, Some(it.dpid), it.datasheet.as_ref()?)));
        for (at, dpid, sheet) in of_all.chain(of_one) {
            if summarized.insert(sheet.file.as_str()) {
                let message = sheets::summary(sheet);
                self.say(Severity::Note, Topic::DataSheet, at, "", message);
            }
            // If the data sheet has a description, the description of the connecting switch
            // decides.
            if let Some(dpid) =
                dpid.filter(|dpid| sheet.description.is_none() && sheet.dpid != Some(*dpid))
            {
                let message = format!(
                    "switch {}: the data sheet {} is of another datapath id and has no description of the switch, so it will not be used",
                    Dpid(dpid),
                    sheet.file
                );
                self.say(Severity::Finding, Topic::DataSheet, at, "", message);
            }
        }
    }
}
