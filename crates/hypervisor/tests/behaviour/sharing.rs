//! Tests of random networks whose edge ports are shared with other tenants. [`crate::courses`] tests networks without
//! shared ports.

use crate::support::courses::{agrees, config};
use crate::support::sharing::{grouping, listing, naming_v10, sharing, sharing_big};
use crate::support::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn networks_with_shared_ports_forward_like_dedicated_switches(case in grouping()) {
        agrees(Version::V1_3, &sharing(), &case)?;
    }
    #[test]
    fn big_switches_with_shared_ports_forward_like_dedicated_switches(case in grouping()) {
        agrees(Version::V1_3, &sharing_big(), &case)?;
    }

    /// The action lists do more than output to shared ports, and some are in later tables.
    #[test]
    fn action_lists_at_shared_ports_act_like_on_dedicated_switches(case in listing()) {
        agrees(Version::V1_3, &sharing(), &case)?;
    }
    #[test]
    fn action_lists_at_big_switch_shared_ports_act_like_on_dedicated_switches(case in listing()) {
        agrees(Version::V1_3, &sharing_big(), &case)?;
    }

    #[test]
    fn networks_with_shared_ports_forward_like_dedicated_switches_on_1_0(case in naming_v10()) {
        agrees(Version::V1_0, &sharing(), &case)?;
    }
    #[test]
    fn big_switches_with_shared_ports_forward_like_dedicated_switches_on_1_0(case in naming_v10()) {
        agrees(Version::V1_0, &sharing_big(), &case)?;
    }
}
