//! An attack, viewers of the page, or clients with tokens, beside the load of a run.

use crate::Error;
use crate::accounts::{Clients, Requests};
use crate::hostile::{Attack, Attacking};
use crate::measure::Collector;
use crate::plan::Setup;
use crate::session::Controllers;
use crate::system::Target;
use crate::viewers::Viewers;

/// What a case has beside its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// All tenants but the first are hostile.
    Attack {
        /// The attack that they make.
        attack: Attack,
        /// Rules of each hostile tenant that attacks by means of them.
        rules: u32,
    },
    /// So many viewers of the page read its events.
    Viewers(usize),
    /// Clients of the REST interface who show tokens.
    Accounts(Requests),
}

/// The same, once it is ready.
#[derive(Debug)]
pub(crate) enum Company {
    Attack(Box<Attacking>),
    Viewers(Viewers),
    Accounts(Box<Clients>),
}

impl Company {
    /// Before the session is opened. An attack takes all controllers but the first.
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

    /// When all switches and controllers are connected.
    pub(crate) fn begin(&mut self, target: &Target) -> Result<(), Error> {
        match self {
            Self::Attack(attacking) => attacking.begin(target),
            Self::Viewers(viewers) => viewers.begin(target),
            Self::Accounts(clients) => clients.begin(target),
        }
    }

    /// Ends it. The samples go to `collector`, if the run counts.
    pub(crate) fn finish(self, collector: Option<&mut Collector>) {
        match self {
            Self::Attack(attacking) => attacking.finish(collector),
            Self::Viewers(viewers) => viewers.finish(collector),
            Self::Accounts(clients) => clients.finish(collector),
        }
    }
}
