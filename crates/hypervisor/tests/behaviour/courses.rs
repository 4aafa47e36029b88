//! Tests of networks with random rules, groups and packets. Each network forwards as dedicated switches of the tenant,
//! and no packet reaches another tenant.

use crate::support::courses::{agrees, cases, config, strange_cases};
use crate::support::networks::{big_networks, local, two_networks};
use crate::support::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn networks_forward_like_dedicated_switches_v13(case in cases(Version::V1_3, 0.3)) {
        agrees(Version::V1_3, &local(two_networks()), &case)?;
    }

    #[test]
    fn networks_forward_like_dedicated_switches_v10(case in cases(Version::V1_0, 0.3)) {
        agrees(Version::V1_0, &local(two_networks()), &case)?;
    }

    /// Rules and packets have any addresses.
    #[test]
    fn networks_forward_any_addresses_like_dedicated_switches_v13(
        case in strange_cases(Version::V1_3)
    ) {
        agrees(Version::V1_3, &local(two_networks()), &case)?;
    }

    #[test]
    fn networks_forward_any_addresses_like_dedicated_switches_v10(
        case in strange_cases(Version::V1_0)
    ) {
        agrees(Version::V1_0, &local(two_networks()), &case)?;
    }

    #[test]
    fn big_switches_forward_like_dedicated_switches_v13(case in cases(Version::V1_3, 0.3)) {
        agrees(Version::V1_3, &local(big_networks()), &case)?;
    }

    #[test]
    fn big_switches_forward_like_dedicated_switches_v10(case in cases(Version::V1_0, 0.3)) {
        agrees(Version::V1_0, &local(big_networks()), &case)?;
    }
}
