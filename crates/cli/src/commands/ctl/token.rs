//! Makes, lists and revokes accounts' bearer tokens (`weir ctl token`).

use super::client::Client;
use super::print::Columns;
use super::printer::Printer;
use crate::exit::Exit;
use clap::Subcommand;
use daemon::access::Role;
use daemon::access::tokens::{Record, Seconds, now};
use daemon::api::tokens::{List, MadeToken, NewToken};

/// The default lifetime of a token.
const LASTS: &str = "90d";

#[derive(Subcommand)]
pub enum What {
    /// Make a token and print it: this once, for it is stored as a hash
    Create {
        /// admin: everything; operator: see everything; tenant: see a tenant, and change its network; metrics: read
        /// metrics
        #[arg(long)]
        role: Role,
        /// The tenant of the role tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Whose it is, or what for; at most 64 characters
        #[arg(long, value_name = "TEXT", default_value = "")]
        name: String,
        /// For how long it is in force: a number with s, m, h or d, at most 3650d; or never
        #[arg(long, value_name = "TIME", default_value = LASTS, value_parser = lasts)]
        expires: Lasts,
    },
    /// List all tokens
    List,
    /// Revoke a token: it opens nothing any more
    Revoke {
        /// Its number in the list
        id: u64,
    },
}

/// The lifetime of a token. `None` means no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasts(Option<Seconds>);

fn lasts(text: &str) -> Result<Lasts, String> {
    const EXPECTED: &str = "expected a number with s, m, h or d, such as 30d; or never";
    if text == "never" {
        return Ok(Lasts(None));
    }
    let unit = match text.as_bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3_600,
        Some(b'd') => 86_400,
        _ => return Err(EXPECTED.to_owned()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| EXPECTED.to_owned())?;
    number.checked_mul(unit).map(|lasts| Lasts(Some(lasts))).ok_or_else(|| EXPECTED.to_owned())
}

pub fn run(printer: &Printer, client: &Client, what: What) -> anyhow::Result<Exit> {
    match what {
        What::Create { role, tenant, name, expires } => {
            let new = NewToken { role, tenant, name, expires_in_s: expires.0 };
            printer.found(client.send("POST", "/api/v1/tokens", &new)?, |out, made: &MadeToken| {
                writeln!(out, "{}", made.token)
            })
        }
        What::List => printer.found(client.get("/api/v1/tokens")?, |out, all: &List| {
            let head = ["ID", "ROLE", "TENANT", "NAME", "EXPIRES"];
            let mut rows = Columns::new(&head, 5);
            let now = now();
            for record in &all.tokens {
                let dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
                rows.row([
                    record.id.to_string(),
                    record.role.to_string(),
                    dash(record.tenant.as_deref().unwrap_or_default()),
                    dash(&record.name),
                    expires(record, now),
                ]);
            }
            rows.write(out, "there are no tokens")
        }),
        What::Revoke { id } => {
            let path = format!("/api/v1/tokens/{id}");
            printer.found(client.delete(&path)?, |out, record: &Record| {
                writeln!(out, "token {} opens nothing any more", record.id)
            })
        }
    }
}

/// The remaining lifetime in one unit, rounded to the nearest number. So a token for 90 days shows `in 90d`, also a
/// second after its creation.
fn expires(record: &Record, now: Seconds) -> String {
    match record.expires_s {
        Some(at) => time_left(at.saturating_sub(now)),
        None => "never".to_owned(),
    }
}

/// Uses the largest unit that gives at least one after rounding, so the text is never `in 60m` or `in 24h`.
fn time_left(seconds: Seconds) -> String {
    let rounded = |unit: Seconds| (seconds.saturating_add(unit / 2)) / unit;
    [(86_400, 3_600, "d"), (3_600, 60, "h"), (60, 1, "m"), (1, 1, "s")]
        .into_iter()
        .find(|(unit, smaller, _)| rounded(*smaller) * smaller >= *unit)
        .map_or_else(|| "over".to_owned(), |(unit, _, name)| format!("in {}{name}", rounded(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_lifetimes_are_parsed_in_days_hours_minutes_and_seconds() {
        for (text, expected) in [
            ("never", Some(None)),
            ("90d", Some(Some(7_776_000))),
            ("12h", Some(Some(43_200))),
            ("5m", Some(Some(300))),
            ("7s", Some(Some(7))),
            ("", None),
            ("d", None),
            ("5", None),
            ("-5m", None),
            ("5µ", None),
            ("99999999999999999999d", None),
            ("999999999999999999d", None),
        ] {
            assert_eq!(lasts(text).ok().map(|lasts| lasts.0), expected, "{text}");
        }
    }

    #[test]
    fn the_remaining_token_lifetime_is_rounded_to_a_single_unit() {
        for (seconds, expected) in [
            (0, "over"),
            (1, "in 1s"),
            (59, "in 59s"),
            (60, "in 1m"),
            (299, "in 5m"),
            (3_569, "in 59m"),
            (3_599, "in 1h"),
            (43_199, "in 12h"),
            (84_599, "in 23h"),
            (86_399, "in 1d"),
            (7_775_999, "in 90d"),
            (7_776_000, "in 90d"),
            (7_700_000, "in 89d"),
            (u64::MAX, "in 213503982334601d"),
        ] {
            assert_eq!(time_left(seconds), expected, "{seconds} s");
        }
    }
}
