//! The attacks of hostile tenants and strangers.

/// An attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// No attack: the quiet tenant is measured alone.
    None,
    /// FLOW_MODs that modify all of a tenant's rules.
    ModifyAll,
    /// FLOW_MODs that add with CHECK_OVERLAP.
    CheckOverlap,
    /// FLOW_MODs that delete rules, but match no rule.
    DeleteNothing,
    /// FLOW_MODs that delete by a cookie that no rule has.
    DeleteCookie,
    /// Requests whose answers are not read.
    SlowReaders,
    /// Controllers that send HELLO and close.
    HelloAndClose,
    /// FLOW_MODs that add long rules, also after the first refusal. The rules fill the place where rules are stored.
    FillStore,
    /// FLOW_MODs that add rules to a small table, also after the first refusal.
    FillTable,
    /// Many controllers of each tenant that connect and stay.
    ManyControllers,
    /// Strangers that emulate switches, with statistics replies that never end.
    EndlessStatistics,
    /// Strangers that emulate switches, and report new ports all the time.
    NewPorts,
    /// Silent connections at the port for switches.
    Silent,
    /// Half-sent requests to the REST interface, and event subscribers that do not read.
    Api,
    /// All attacks at once, except those that need another switch or another limit of descriptors.
    All,
}

impl Attack {
    /// All values.
    pub const ALL: [Self; 15] = [
        Self::None,
        Self::ModifyAll,
        Self::CheckOverlap,
        Self::DeleteNothing,
        Self::DeleteCookie,
        Self::SlowReaders,
        Self::HelloAndClose,
        Self::FillStore,
        Self::FillTable,
        Self::ManyControllers,
        Self::EndlessStatistics,
        Self::NewPorts,
        Self::Silent,
        Self::Api,
        Self::All,
    ];

    /// The name on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ModifyAll => "modify-all",
            Self::CheckOverlap => "check-overlap",
            Self::DeleteNothing => "delete-nothing",
            Self::DeleteCookie => "delete-cookie",
            Self::SlowReaders => "slow-readers",
            Self::HelloAndClose => "hello-and-close",
            Self::FillStore => "fill-store",
            Self::FillTable => "fill-table",
            Self::ManyControllers => "many-controllers",
            Self::EndlessStatistics => "endless-statistics",
            Self::NewPorts => "new-ports",
            Self::Silent => "silent",
            Self::Api => "api",
            Self::All => "all",
        }
    }

    /// The attacks of hostile tenants, not of strangers, that are a part of [`Self::All`].
    pub(super) const OF_TENANTS: [Self; 7] = [
        Self::ModifyAll,
        Self::CheckOverlap,
        Self::DeleteNothing,
        Self::DeleteCookie,
        Self::SlowReaders,
        Self::HelloAndClose,
        Self::FillStore,
    ];

    /// The attacks that are no part of [`Self::All`]. A small table, and a system with few descriptors, would make
    /// other attacks weaker.
    pub(super) const APART: [Self; 2] = [Self::FillTable, Self::ManyControllers];

    /// The part of tenant `index` in this attack.
    pub(super) fn of_tenant(self, index: usize) -> Self {
        match self {
            Self::All => {
                let place = index.checked_rem(Self::OF_TENANTS.len()).unwrap_or(0);
                Self::OF_TENANTS.get(place).copied().unwrap_or(Self::None)
            }
            other if Self::OF_TENANTS.contains(&other) || Self::APART.contains(&other) => other,
            _ => Self::None,
        }
    }

    pub(super) fn includes(self, other: Self) -> bool {
        self == other || (self == Self::All && !Self::APART.contains(&other))
    }

    /// Whether the attack fills the space for the rules of other tenants. The quiet tenant adds rules during such an
    /// attack.
    pub(super) fn is_against_rules(self) -> bool {
        matches!(self, Self::FillStore | Self::FillTable)
    }

    pub(super) fn needs_rules(self) -> bool {
        matches!(
            self,
            Self::ModifyAll | Self::CheckOverlap | Self::DeleteNothing | Self::DeleteCookie
        )
    }
}

impl std::str::FromStr for Attack {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|attack| attack.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text} is no attack: must be one of {names}")
        })
    }
}
