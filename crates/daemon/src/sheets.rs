//! The contents of data sheets in words: for `weir check`, REST and the log.

use hypervisor::Standing;
use hypervisor::sheet::{Measured, MessageClass, Sheet};

/// The name of a class of messages in `[tenants.limits]`; `other` has no key there.
pub(crate) fn name(class: MessageClass) -> &'static str {
    match class {
        MessageClass::PacketOut => "packet_out",
        MessageClass::FlowMod => "flow_mod",
        MessageClass::Statistics => "statistics",
        MessageClass::Other => "other",
        MessageClass::PacketIn => "packet_in",
    }
}

/// The file of the sheet from which limits come; empty if there is none.
pub(crate) fn file(standing: &Standing) -> &str {
    match standing {
        Standing::Holds(sheet) => &sheet.file,
        _ => "",
    }
}

/// The reason for the message rate of a tenant with this weight; `weights` is the sum of all tenants' weights.
pub(crate) fn reason(measured: &Measured, file: &str, weight: u64, weights: u64) -> String {
    let Measured { rate, cost } = measured;
    format!(
        "weight {weight} of {weights}, of {} per second ({} by the experiment {}, {file}); one keeps the switch busy for {} us",
        number(rate.value),
        rate.name,
        rate.experiment,
        number(*cost as f64 / 1e3),
    )
}

/// The reason why a sheet is used.
pub(crate) fn agreement(sheet: &Sheet, description: Option<&[String; 3]>) -> String {
    match (&sheet.description, description) {
        (Some(words), Some(_)) => {
            format!("the switch describes itself as the sheet does: {}", joined(words))
        }
        _ => "nothing shows that it is of another switch".to_owned(),
    }
}

/// The reason why a sheet is not used.
pub(crate) fn difference(sheet: &Sheet, description: Option<&[String; 3]>) -> String {
    match (&sheet.description, description) {
        (Some(sheet), Some(switch)) => format!(
            "the switch describes itself as {}, the sheet is of {}",
            joined(switch),
            joined(sheet)
        ),
        (None, _) => {
            "the sheet has no description of the switch, and another datapath id".to_owned()
        }
        (_, None) => {
            "the switch does not describe itself, and the sheet has another datapath id".to_owned()
        }
    }
}

fn joined(words: &[String; 3]) -> String {
    words.join(" / ")
}

/// A number with at most two decimals, without trailing zeros.
fn number(value: f64) -> String {
    match value {
        10.0.. => format!("{value:.0}"),
        _ => {
            let text = format!("{value:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

/// A sheet in one line.
pub(crate) fn summary(sheet: &Sheet) -> String {
    let rate = |(class, it): (&MessageClass, &Measured)| {
        let (name, rate) = (name(*class), number(it.rate.value));
        format!("{name} {rate} per second ({} us each)", number(it.cost as f64 / 1e3))
    };
    let mut all: Vec<String> = sheet.classes.iter().map(rate).collect();
    all.extend(sheet.table.as_ref().map(|table| format!("a table holds {} rules", table.rules)));
    let missing = MessageClass::ALL.into_iter().filter(|it| !sheet.classes.contains_key(it));
    let missing: Vec<&str> = missing.map(name).collect();
    if !missing.is_empty() {
        all.push(format!("not measured: {}", missing.join(", ")));
    }
    let of = sheet.description.as_ref().map(|words| format!(" of {}", joined(words)));
    format!(
        "limits come from the data sheet {}{}, measured {}: {}",
        sheet.file,
        of.unwrap_or_default(),
        sheet.measured,
        all.join(", ")
    )
}
