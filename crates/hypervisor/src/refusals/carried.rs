//! How a refusal gets from a member of a big switch to the switch in front of the members.
//!
//! Both ends of the connection are Weir, so the data of the ERROR can carry the verdict: Weir does not need the excerpt
//! of the request, which a controller would get there.

use super::{Reason, RefusedBy, Refuser, Verdict};
use alloc::vec::Vec;
use openflow::error::Error;

const WHO: [RefusedBy; 3] = [RefusedBy::Weir, RefusedBy::Switch, RefusedBy::Silence];

impl Verdict {
    /// The verdict, on this member of a big switch.
    pub(crate) fn on_member(self, dpid: u64) -> Verdict {
        Verdict { by: Refuser { member: Some(dpid), ..self.by }, ..self }
    }

    /// The data of the ERROR that carries the verdict: who refused, the check, the number that the check is about,
    /// whether a member refused, and the member. The code is in the ERROR itself.
    pub(crate) fn to_data(self) -> Vec<u8> {
        let Verdict { refused, by: Refuser { who, member } } = self;
        let head = [who as u8, refused.reason() as u8];
        let (value, dpid) = (refused.value().to_be_bytes(), member.unwrap_or(0).to_be_bytes());
        [&head[..], &value, &[u8::from(member.is_some())], &dpid].concat()
    }

    /// The verdict that an ERROR carries.
    pub(crate) fn of_error(error: &Error<'_>) -> Verdict {
        Verdict::carried(error).unwrap_or(Verdict::by_switch(error.code))
    }

    fn carried(error: &Error<'_>) -> Option<Verdict> {
        let &[who, reason, a, b, c, d, is_of_member, ref dpid @ ..] = error.data else {
            return None;
        };
        let who = *WHO.get(usize::from(who))?;
        let reason = *Reason::ALL.get(usize::from(reason))?;
        let dpid = u64::from_be_bytes(dpid.try_into().ok()?);
        let member = (is_of_member != 0).then_some(dpid);
        let refused = reason.of(u32::from_be_bytes([a, b, c, d]), error.code);
        Some(Verdict { refused, by: Refuser { who, member } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::error::v13;

    #[test]
    fn a_verdict_is_read_back_unchanged_from_the_error_data() {
        let code = v13::BAD_ACTION_BAD_OUT_PORT;
        for who in WHO {
            for (value, &reason) in (0x0102_0300..).zip(Reason::ALL) {
                let here = Verdict::of(reason.of(value, code), who);
                for verdict in [here, here.on_member(0x0102_0304_0506_0708), here.on_member(0)] {
                    let data = verdict.to_data();
                    assert_eq!(Verdict::of_error(&Error { code, data: &data }), verdict);
                    for data in [&data[1..], &[], &[data.as_slice(), &[0]].concat()] {
                        let by_switch = Verdict::by_switch(code);
                        assert_eq!(Verdict::of_error(&Error { code, data }), by_switch);
                    }
                }
            }
        }
    }
}
