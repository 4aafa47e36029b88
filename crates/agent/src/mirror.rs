//! Writes input for `tc -batch` that mirrors random shares of an interface's frames to destinations.
//!
//! There is one filter per destination, in the order of `prio`. Each filter draws a random number; the first filter
//! that matches ends the search. Therefore a frame goes to at most one destination (assumption A3 of the paper) for any
//! random numbers. The k-th filter sees only frames that no earlier filter took, so the limit of the k-th filter is the
//! conditional share s_k / (1 − s_1 − … − s_{k−1}).
//!
//! ```text
//!   ingress of eth1 ── prio 1: draw < s₁ ────────────▶ clone to "capture": sampled here
//!                 └── prio 2: draw < s₂/(1 − s₁) ───▶ clone to "vxlan2": mirrored to server 2
//!                 └── none: the frame goes on, as all of them do
//! ```
//!
//! **Loops are impossible.** Filters are only on named interfaces of virtual machines, and never on a destination:
//! [`script`] refuses such a destination. No filter takes VXLAN datagrams. Therefore a mirrored frame inside VXLAN that
//! passes a sampled interface is not mirrored again.

use crate::error::{Error, Result};
use packet::{Filter, RandomSample};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// The registered port of VXLAN.
pub const VXLAN_PORT: u16 = 4789;

/// A share of an interface's frames, and the interface that gets clones of the frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    /// The share of all frames, or of the tenant's frames, 0 to 1.
    pub share: f64,
    /// The IPv4 network (address and prefix length) of the frames, where tenants have their own rates; `None` for the
    /// frames of all tenants.
    pub tenant: Option<(Ipv4Addr, u8)>,
    /// The interface that gets the clones, such as a VXLAN interface or one end of a veth pair.
    pub interface: String,
}

/// The command that removes the filters of an earlier script; `tc` fails when there are no filters.
///
/// # Errors
/// [`Error::Option`] when `interface` is not a valid name of an interface.
pub fn clear(interface: &str) -> Result<String> {
    check_name(interface)?;
    Ok(format!("qdisc del dev {interface} clsact\n"))
}

/// Writes commands that add filters at the ingress of `interface`; the interface has no `clsact` yet.
///
/// # Errors
/// [`Error::Option`] when shares are not within 0 to 1 or their sum is more than 1; when a name is not a valid name of
/// an interface; when an interface would be mirrored to itself or to a `sampled` interface; or when two tenants have a
/// common address, because two filters would draw for the same frame.
pub fn script(interface: &str, destinations: &[Destination], sampled: &[&str]) -> Result<String> {
    let mut script = String::new();
    check_name(interface)?;
    // Writing to a String cannot fail.
    let _ = writeln!(script, "qdisc add dev {interface} clsact");
    check_tenants(destinations)?;
    let mut rest: BTreeMap<Option<(Ipv4Addr, u8)>, f64> = BTreeMap::new();
    for (index, Destination { share, tenant, interface: to }) in destinations.iter().enumerate() {
        check_name(to)?;
        if to == interface || sampled.contains(&to.as_str()) {
            return Err(Error::Option(format!(
                "{to} is itself sampled: mirroring {interface} to it would be a loop"
            )));
        }
        let place = rest.entry(*tenant).or_insert(1.0);
        let left = *place;
        if !(0.0..=1.0).contains(share) || *share > left + 1e-9 {
            return Err(Error::Option(format!(
                "the share {share} for {to} is more than the {left} that is left, or not within 0 to 1"
            )));
        }
        let conditional = if left > 0.0 { (share / left).min(1.0) } else { 0.0 };
        *place = (left - share).max(0.0);
        let below = RandomSample::limit(conditional);
        if below == 0 {
            continue;
        }
        let sample =
            RandomSample { below, keep: u32::MAX, except_port: Some(VXLAN_PORT), source: *tenant };
        let _ = writeln!(
            script,
            "filter add dev {interface} ingress prio {} protocol all bpf bytecode \"{}\" \
             action mirred egress mirror dev {to}",
            index + 1,
            Filter::random(&sample).bytecode()
        );
    }
    Ok(script)
}

/// Refuses tenants with common addresses: a frame belongs to one tenant only. A share without a tenant excludes shares
/// with a tenant.
fn check_tenants(destinations: &[Destination]) -> Result<()> {
    let mask = |prefix: u8| u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
    let meet = |a: Option<(Ipv4Addr, u8)>, b: Option<(Ipv4Addr, u8)>| match (a, b) {
        (Some((a, short)), Some((b, long))) => {
            (a.to_bits() ^ b.to_bits()) & mask(short) & mask(long) == 0
        }
        _ => true,
    };
    for (index, one) in destinations.iter().enumerate() {
        let others = destinations.iter().take(index).filter(|other| other.tenant != one.tenant);
        if others.into_iter().any(|other| meet(one.tenant, other.tenant)) {
            return Err(Error::Option(
                "two tenants have addresses in common: a frame would be drawn for twice".to_owned(),
            ));
        }
    }
    Ok(())
}

/// Accepts names that Linux allows for an interface and that `tc` cannot take for another word.
fn check_name(name: &str) -> Result<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if (1..=15).contains(&name.len()) && name.chars().all(fine) && !name.starts_with('-') {
        Ok(())
    } else {
        Err(Error::Option(format!("{name:?} is no name of an interface")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(interface: &str, share: f64) -> Destination {
        Destination { share, tenant: None, interface: interface.to_owned() }
    }

    fn of(network: [u8; 4], prefix: u8, to: Destination) -> Destination {
        Destination { tenant: Some((network.into(), prefix)), ..to }
    }

    /// The limits in the script, as shares.
    fn limits(script: &str) -> Vec<f64> {
        let limit =
            |line: &str| line.split(",53 0 1 ").nth(1)?.split(',').next()?.parse::<f64>().ok();
        script
            .lines()
            .skip(1)
            .map(|line| limit(line).map_or(1.0, |n| n / RandomSample::limit(1.0) as f64))
            .collect()
    }

    #[test]
    fn mirror_shares_become_conditional_probabilities_per_tenant() {
        let found =
            limits(&script("eth1", &[to("a", 0.2), to("b", 0.4), to("c", 0.4)], &[]).unwrap());
        for (found, expected) in found.iter().zip([0.2, 0.5, 1.0]) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        assert_eq!(found.len(), 3);
        // Each tenant has its own shares.
        let tenants = [
            of([10, 1, 0, 0], 16, to("a", 0.5)),
            of([10, 2, 0, 0], 16, to("a", 0.5)),
            of([10, 1, 0, 0], 16, to("b", 0.25)),
        ];
        let found = limits(&script("eth1", &tenants, &[]).unwrap());
        assert_eq!(found, [0.5, 0.5, 0.5]);
        assert_eq!(script("eth1", &[to("a", 0.0)], &[]).unwrap().lines().count(), 1);
    }

    #[test]
    fn mirror_loops_and_invalid_shares_names_and_tenants_are_refused() {
        for (destinations, words) in [
            (vec![to("eth1", 0.5)], "would be a loop"),
            (vec![to("eth2", 0.5)], "would be a loop"),
            (vec![to("a", 0.7), to("b", 0.7)], "share 0.7 for b"),
            (vec![to("a", f64::NAN)], "share NaN"),
            (vec![to("a", -0.1)], "share -0.1"),
            (vec![to("a b", 0.1)], "no name"),
            (vec![to("-a", 0.1)], "no name"),
            (vec![of([10, 0, 0, 0], 8, to("a", 0.1)), to("b", 0.1)], "in common"),
            (
                vec![of([10, 0, 0, 0], 8, to("a", 0.1)), of([10, 7, 0, 0], 16, to("b", 0.1))],
                "in common",
            ),
        ] {
            let error = script("eth1", &destinations, &["eth2"]).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
