//! Meters: a tenant's meter is one meter on the switch, with another id.

use crate::store::Kind;
use crate::switch::{NumberBefore, Request, Switch};
use crate::v13::numbers::GroupOrMeter;
use crate::v13::unreadable;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::rule::is_reportable;
use compile::{Instances, Reason, Refused, Variant};
use openflow::error::v13 as code;
use openflow::v13::{METER_ALL, METER_MAX, MeterBand, MeterMod, MeterModCommand};

impl Switch {
    /// A tenant changes its meters.
    pub(crate) fn meter_mod_v13(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let meter = MeterMod::parse(request.body()).map_err(unreadable)?;
        let tenant = request.tenant;
        // A DELETE without a meter is a change, too: the switch may refuse an earlier change.
        self.begin(request);
        let deletes = meter.command == MeterModCommand::DELETE;
        let known = self.numbers(tenant, Kind::Meter).get(meter.meter_id).cloned();
        if meter
            .bands
            .iter()
            .any(|band| !matches!(band, MeterBand::Drop { .. } | MeterBand::DscpRemark { .. }))
        {
            return Err(code::METER_MOD_FAILED_BAD_BAND.into());
        }
        if !deletes && !is_reportable(meter.bands.as_bytes().len(), meter.bands.iter().count()) {
            return Err(code::METER_MOD_FAILED_OUT_OF_BANDS.into());
        }
        match meter.command {
            MeterModCommand::ADD if known.is_some() => {
                Err(code::METER_MOD_FAILED_METER_EXISTS.into())
            }
            MeterModCommand::ADD => {
                if meter.meter_id == 0 || meter.meter_id > METER_MAX {
                    return Err(code::METER_MOD_FAILED_INVALID_METER.into());
                }
                if self.numbers(tenant, Kind::Meter).len() >= self.most_meters(tenant) as usize {
                    let limit = self.tenants[tenant].terms.limits.meters;
                    let is_limit = self.most_meters(tenant) == limit;
                    let reason = if is_limit { Reason::ByCode } else { Reason::MeterShare };
                    return Err(reason.with(code::METER_MOD_FAILED_OUT_OF_METERS));
                }
                let again = self.id_again(tenant, Kind::Meter, meter.meter_id, Variant::default());
                let physical = again.unwrap_or_else(|| self.ids.lowest_free(Kind::Meter));
                self.put_meter(request, &meter, physical)
            }
            MeterModCommand::MODIFY => {
                let known = known.ok_or(code::METER_MOD_FAILED_UNKNOWN_METER)?;
                self.put_meter(request, &meter, known.instances.id())
            }
            MeterModCommand::DELETE => {
                let gone = match meter.meter_id {
                    METER_ALL => self.numbers(tenant, Kind::Meter).all(),
                    number => Vec::from([number]),
                };
                gone.into_iter().for_each(|number| self.delete_meter(request, number));
                Ok(())
            }
            _ => Err(code::METER_MOD_FAILED_BAD_COMMAND.into()),
        }
    }

    fn put_meter(
        &mut self,
        request: &Request<'_>,
        meter: &MeterMod<'_>,
        physical: u32,
    ) -> Result<(), Refused> {
        let mut message = Vec::new();
        MeterMod { meter_id: physical, ..*meter }
            .write_message(0, &mut message)
            .map_err(|_| code::METER_MOD_FAILED_OUT_OF_BANDS)?;
        let wanted = GroupOrMeter {
            instances: Instances::new(physical, BTreeMap::new()),
            body: request.body().into(),
        };
        let number = meter.meter_id;
        let before = self.replace_number(request.tenant, Kind::Meter, number, Some(wanted));
        let made = if before.is_none() { Vec::from([physical]) } else { Vec::new() };
        let change = NumberBefore { made, ..NumberBefore::new(Kind::Meter, number, before) };
        self.submit_numbers(request, Vec::from([change]), &[message]);
        Ok(())
    }

    fn delete_meter(&mut self, request: &Request<'_>, number: u32) {
        // To delete a missing meter is not an error (specification section 6.6).
        let Some(before) = self.replace_number(request.tenant, Kind::Meter, number, None) else {
            return;
        };
        let physical = before.instances.id();
        let change = NumberBefore::new(Kind::Meter, number, Some(before));
        let cause = self.begin_numbers(request, Vec::from([change]));
        let mut users = self.take_users(&cause, Kind::Meter, |meter| meter == number);
        self.submit_with_users(&cause, Kind::Meter, physical, &mut users);
    }
}
