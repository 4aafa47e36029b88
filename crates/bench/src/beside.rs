//! Runs an attack, viewers of the page, or clients with tokens during the load of a run.

use crate::Error;
use crate::accounts::{Clients, Requests};
use crate::hostile::attack::Attack;
use crate::hostile::attacking::Attacking;
use crate::measure::Collector;
use crate::plan::Setup;
use crate::session::Controllers;
use crate::system::Target;
use crate::viewers::Viewers;

/// The activity of a case during its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// All tenants but the first are hostile.
    Attack {
        /// The attack of the hostile tenants.
        attack: Attack,
        /// Rules of each hostile tenant, if the attack needs rules.
        rules: u32,
    },
    /// This number of viewers of the page, who read the events of the page.
    Viewers(usize),
    /// Clients of the REST interface that show tokens.
    Accounts(Requests),
}

/// An activity that is ready to begin.
#[derive(Debug)]
pub(crate) enum Company {
    Attack(Box<Attacking>),
    Viewers(Viewers),
    Accounts(Box<Clients>),
}

impl Company {
    /// Prepares the activity before the session is opened. An attack takes all controllers except
    /// the first.
    pub(crate) fn prepare(
        beside: Beside,
        setup: &Setup,
        controllers: &mut Controllers,
        target: &Target,
    ) -> Result<Self, Error> {
        Ok(match beside {
            Beside::Attack { attack, rules } => {
                let attacking = Attacking::prepare((attack, rules), setup, controllers, target)?;
                Self::Attack(Box::new(attacking))
            }
            Beside::Viewers(count) => Self::Viewers(Viewers::new(count)),
            Beside::Accounts(requests) => Self::Accounts(Box::new(Clients::new(requests, setup))),
        })
    }

    /// Begins the activity when all switches and controllers are connected.
    pub(crate) fn begin(&mut self, target: &Target) -> Result<(), Error> {
        match self {
            Self::Attack(attacking) => attacking.begin(target),
            Self::Viewers(viewers) => viewers.begin(target),
            Self::Accounts(clients) => clients.begin(target),
        }
    }

    /// Ends the activity. The samples go to `collector`, if the run counts.
    pub(crate) fn finish(self, collector: Option<&mut Collector>) {
        match self {
            Self::Attack(attacking) => attacking.finish(collector),
            Self::Viewers(viewers) => viewers.finish(collector),
            Self::Accounts(clients) => clients.finish(collector),
        }
    }
}
