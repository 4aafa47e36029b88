//! The paper's table 1, which says what was measured, and what is drawn from its rows.

use bench::Kind;
use std::fmt;
use std::str::FromStr;

/// A row of Table 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The message.
    pub message: Kind,
    /// Numbers of tenants; the table says `2 : 20` and leaves the steps open.
    pub tenants: &'static [usize],
    /// The same for a quick look.
    pub quick_tenants: &'static [usize],
    /// Messages per second of all tenants together.
    pub rates: &'static [f64],
    /// TCP_NODELAY at the tenants' controllers: false is AGG, true is ND.
    pub nodelay: &'static [bool],
    /// What is drawn from it.
    pub figures: &'static [Figure],
}

/// Table 1.
pub const TABLE_1: [Row; 4] = [
    Row {
        message: Kind::PacketIn,
        tenants: &[1],
        quick_tenants: &[1],
        rates: &[10_000.0, 20_000.0, 30_000.0, 40_000.0],
        nodelay: &[false],
        figures: &[Figure::OneRate, Figure::Rates],
    },
    Row {
        message: Kind::PortStats,
        tenants: &[1],
        quick_tenants: &[1],
        rates: &[5_000.0, 6_000.0, 7_000.0, 8_000.0],
        nodelay: &[false],
        figures: &[Figure::PortStats],
    },
    Row {
        message: Kind::PacketIn,
        tenants: &[2, 5, 10, 15, 20],
        quick_tenants: &[2, 20],
        rates: &[40_000.0],
        nodelay: &[false, true],
        figures: &[Figure::TenantsPacketIn],
    },
    Row {
        message: Kind::PacketOut,
        tenants: &[2, 5, 10, 15, 20],
        quick_tenants: &[2, 10, 20],
        rates: &[60_000.0],
        nodelay: &[false, true],
        figures: &[Figure::Tenants, Figure::Cpu, Figure::Fairness],
    },
];

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// 3a: PACKET_IN at 40,000/s.
    OneRate,
    /// 3b: PACKET_IN from 10,000 to 40,000/s.
    Rates,
    /// 3c: PORT_STATS from 5,000 to 8,000/s.
    PortStats,
    /// 4: PACKET_OUT at 60,000/s over 2 to 20 tenants.
    Tenants,
    /// 5: the same, the hypervisor's CPU.
    Cpu,
    /// 6: the same with 20 tenants, each tenant's latency.
    Fairness,
    /// Table 1's third row, PACKET_IN at 40,000/s over 2 to 20 tenants, which the paper does not draw.
    TenantsPacketIn,
}

impl Figure {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 7] = [
        Self::OneRate,
        Self::Rates,
        Self::PortStats,
        Self::Tenants,
        Self::Cpu,
        Self::Fairness,
        Self::TenantsPacketIn,
    ];

    /// As the paper names it; the row that it does not draw is `table1`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneRate => "3a",
            Self::Rates => "3b",
            Self::PortStats => "3c",
            Self::Tenants => "4",
            Self::Cpu => "5",
            Self::Fairness => "6",
            Self::TenantsPacketIn => "table1",
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Figure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|figure| figure.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text} is no figure of this paper: must be one of {names}")
        })
    }
}
