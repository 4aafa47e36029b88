//! Properties of random networks whose edge ports are shared with other tenants. The networks without shared ports are
//! in [`crate::courses`].

use crate::support::courses::{agrees, config};
use crate::support::sharing::{grouping, listing, naming_v10, sharing, sharing_big};
use crate::support::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(config())]

    /// The same for hosts at ports that other tenants share.
    #[test]
    fn shared_ports_are_the_tenants_own_to_its_hosts(case in grouping()) {
        agrees(Version::V1_3, &sharing(), &case)?;
    }
    #[test]
    fn so_are_those_of_big_switches(case in grouping()) {
        agrees(Version::V1_3, &sharing_big(), &case)?;
    }

    /// Also with action lists that do more than output to shared ports, and in later tables.
    #[test]
    fn they_are_so_by_lists(case in listing()) {
        agrees(Version::V1_3, &sharing(), &case)?;
    }
    #[test]
    fn also_of_big_switches(case in listing()) {
        agrees(Version::V1_3, &sharing_big(), &case)?;
    }

    /// Also on OpenFlow 1.0.
    #[test]
    fn they_are_so_on_1_0(case in naming_v10()) {
        agrees(Version::V1_0, &sharing(), &case)?;
    }
    #[test]
    fn also_of_big_switches_on_1_0(case in naming_v10()) {
        agrees(Version::V1_0, &sharing_big(), &case)?;
    }
}
