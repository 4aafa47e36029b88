//! Meters: one of a tenant's is one on the switch, under another number.

use super::numbers::{Held, Numbered, lowest_free, said, write_deletion};
use crate::ids::TenantIndex;
use crate::south::pending::Awaits;
use crate::store::Kind;
use crate::switch::{Cause, NumberBefore, Request, Switch};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::Instances;
use compile::rule::is_reportable;
use compile::{Reason, Refused};
use openflow::error::v13 as code;
use openflow::v13::{METER_ALL, METER_MAX, MeterBand, MeterMod, MeterModCommand};

impl Switch {
    /// A tenant changes its meters.
    pub(crate) fn meter_mod_v13(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let meter = MeterMod::parse(request.body()).map_err(super::unreadable)?;
        let tenant = request.tenant;
        let is_meant = |number| meter.meter_id == METER_ALL || number == meter.meter_id;
        let deletes = meter.command == MeterModCommand::DELETE;
        let is_there = || self.numbers(tenant, Kind::Meter).all().into_iter().any(is_meant);
        if self.is_open(tenant, Kind::Meter, is_meant)
            || deletes && is_there() && self.has_open_users(tenant, Kind::Meter, is_meant)
        {
            self.postpone(request);
            return Ok(());
        }
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
                    let limit = self.tenants[tenant.0 as usize].limits.meters;
                    let is_limit = self.most_meters(tenant) == limit;
                    let reason = if is_limit { Reason::ByCode } else { Reason::MeterShare };
                    return Err(reason.with(code::METER_MOD_FAILED_OUT_OF_METERS));
                }
                let physical = lowest_free(&self.used.meters);
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
                for number in gone {
                    self.delete_meter(request, number)?;
                }
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
        let wanted = Numbered {
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

    fn delete_meter(&mut self, request: &Request<'_>, number: u32) -> Result<(), Refused> {
        // Deleting what is not there is not an error (specification section 6.6).
        let Some(before) = self.replace_number(request.tenant, Kind::Meter, number, None) else {
            return Ok(());
        };
        let mut message = Vec::new();
        let physical = before.instances.id();
        write_deletion(Kind::Meter, physical, &mut message)
            .map_err(|_| code::BAD_REQUEST_BAD_LEN)?;
        let deleted = Vec::from([physical]);
        let change =
            NumberBefore { deleted, ..NumberBefore::new(Kind::Meter, number, Some(before)) };
        let cause = self.begin_numbers(request, Vec::from([change]));
        let mut users = self.take_users(&cause, Kind::Meter, |meter| meter == number);
        self.submit_with_users(&cause, (physical, &message), &mut users);
        Ok(())
    }

    /// Installs the meters that are missing, and modifies those that do something else.
    pub(crate) fn reconcile_meters(&mut self, held: &Held, now: Instant) {
        let mut messages = Vec::new();
        for tenant in &self.tenants {
            for (_, known) in tenant.meters.iter() {
                let Ok(meter) = MeterMod::parse(&known.body) else { continue };
                let command = match held.meters.get(&known.instances.id()) {
                    None => MeterModCommand::ADD,
                    Some(does) if *does == said(meter.flags, meter.bands) => continue,
                    Some(_) => MeterModCommand::MODIFY,
                };
                let mut message = Vec::new();
                let wanted = MeterMod { meter_id: known.instances.id(), command, ..meter };
                if wanted.write_message(0, &mut message).is_ok() {
                    messages.push(message);
                }
            }
        }
        for message in messages {
            self.send_own(Awaits::Nothing, &message, now);
        }
    }

    /// A tenant that is gone leaves no meters behind.
    pub(crate) fn resync_meters(&mut self, now: Instant) {
        for at in 0..self.tenants.len() {
            let tenant = TenantIndex(at as u32);
            let present = self.tenants[at].present;
            let gone = if present { Vec::new() } else { self.numbers(tenant, Kind::Meter).all() };
            let gone = gone.into_iter().filter_map(|number| {
                Some(self.replace_number(tenant, Kind::Meter, number, None)?.instances.id())
            });
            let gone = gone.collect();
            self.delete_unreferenced(&Cause::own(tenant, now), Kind::Meter, gone);
        }
    }
}
