//! Warns that Weir's own certificate expires and must be renewed: from a month before, once a day.

/// The time of the first warning before the expiry.
const SOON: u64 = 30 * DAY;
const DAY: u64 = 24 * 3600;

/// The warning for a certificate that is valid until `not_after`, if any; times in seconds of Unix time.
pub(crate) fn warning(not_after: u64, now: u64) -> Option<String> {
    if now >= not_after {
        return Some(format!("expired {} days ago", (now - not_after) / DAY));
    }
    let left = not_after - now;
    (left < SOON).then(|| format!("expires in {} days", left / DAY))
}

/// Repeats the warning once a day, and at once for another certificate.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    logged: Option<(u64, u64)>,
}

impl Watch {
    /// The warning that is due now; without a certificate `not_after` is 0.
    pub(crate) fn look(&mut self, not_after: u64, now: u64) -> Option<String> {
        let today = (not_after, now / DAY);
        if not_after == 0 || self.logged == Some(today) {
            return None;
        }
        let warning = warning(not_after, now)?;
        self.logged = Some(today);
        Some(warning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_warning_is_given_daily_from_30_days_before_expiry() {
        let (mut watch, end) = (Watch::default(), 1_000 * DAY);
        assert_eq!(watch.look(0, end), None, "there is none");
        let mut warnings = Vec::new();
        // The watch looks every hour, from 40 days before expiry until two days after expiry.
        for hour in 960 * 24..1_002 * 24 {
            warnings.extend(watch.look(end, hour * 3600));
        }
        assert_eq!(warnings.len(), 31 + 1);
        assert_eq!(warnings[0], "expires in 29 days");
        assert_eq!(warnings[31], "expired 1 days ago");
        assert_eq!(watch.look(2_000 * DAY, end), None, "it was renewed");
        assert!(watch.look(end + DAY, end).is_some(), "and again for too short a time");
    }
}
