//! Statistics that only 1.3 has, and questions to a switch of 1.3 for a tenant's entries.

use crate::flows::Wanted;
use crate::ids::TenantIndex;
use crate::parts::written;
use crate::south::pending::Purpose;
use crate::store::Kind;
use crate::switch::{Request, Share, Switch};
use crate::tally::cookies_of;
use crate::v13::flow_mod::physical_table;
use crate::v13::ports::known;
use crate::v13::statistics::ask;
use alloc::vec::Vec;
use compile::{Refused, metadata};
use flowspace::Field;
use openflow::error::v13 as code;
use openflow::v13::{
    FlowStatsRequest, GROUP_ANY, GroupDesc, GroupMod, METER_ALL, MatchBuf, MeterConfig, MeterMod,
    MeterStats, MultipartRequest, MultipartRequestBody as Body, MultipartType, Port, PortNo,
    TABLE_ALL,
};
use openflow::{ErrorCode, List, v13};

impl Switch {
    /// A tenant asks for statistics that only 1.3 has. Types that no version has are refused, too.
    pub(crate) fn statistics_v13(
        &mut self,
        request: &Request<'_>,
        body: Body<'_>,
    ) -> Result<(), Refused> {
        let tenant = request.tenant;
        match body {
            Body::PortDesc if self.configures_ports(tenant) => self.postpone(request),
            Body::PortDesc => {
                let ports = self.described_ports(tenant).into_values();
                self.reply_parts(request, MultipartType::PORT_DESC, ports);
            }
            Body::GroupDesc => self.group_descriptions(request),
            Body::MeterConfig { meter_id } => self.meter_configurations(request, meter_id)?,
            Body::Group { group_id } => {
                let questions = self.group_questions(tenant, group_id);
                self.collect(request, MultipartType::GROUP.0, Share::Tenant, &questions, 1);
            }
            Body::Meter { meter_id } => {
                let known = self.numbers(tenant, Kind::Meter).get(meter_id);
                let meter_id = match known {
                    // The answer is filtered.
                    _ if meter_id == METER_ALL => METER_ALL,
                    Some(known) => known.instances.id(),
                    None => return Err(code::METER_MOD_FAILED_UNKNOWN_METER.into()),
                };
                self.ask_switch(request, Body::Meter { meter_id }, 1);
            }
            Body::GroupFeatures | Body::MeterFeatures => self.ask_switch(request, body, 1),
            Body::TableFeatures(wanted) if wanted.is_empty() => self.ask_switch(request, body, 4),
            Body::TableFeatures(_) => return Err(code::TABLE_FEATURES_FAILED_EPERM.into()),
            _ => return Err(code::BAD_REQUEST_BAD_MULTIPART.into()),
        }
        Ok(())
    }

    /// Asks the switch a question whose answer is the same for all tenants.
    fn ask_switch(&mut self, request: &Request<'_>, body: Body<'_>, cost: u32) {
        let type_ = MultipartRequest::from(body).type_().0;
        self.collect(request, type_, Share::Anybody, &ask(body), cost);
    }

    /// The switch reports its groups, meters or ports.
    pub(crate) fn learn_v13(&mut self, purpose: Purpose, type_: MultipartType, entries: &[u8]) {
        match (purpose, type_) {
            (Purpose::Groups, MultipartType::GROUP_DESC) => {
                let groups = List::<GroupDesc<'_>>::parse(entries).unwrap_or_default();
                self.datapath.learn_numbers(Kind::Group, entries, groups.iter().count());
            }
            (Purpose::Meters, MultipartType::METER_CONFIG) => {
                let meters = List::<MeterConfig<'_>>::parse(entries).unwrap_or_default();
                self.datapath.learn_numbers(Kind::Meter, entries, meters.iter().count());
            }
            (Purpose::Ports, MultipartType::PORT_DESC) => {
                for port in List::<Port>::parse(entries).unwrap_or_default() {
                    let (number, port) = known(&port);
                    self.datapath.set_port(number, Some(port));
                }
            }
            _ => {}
        }
    }

    /// The tenant's part of an answer that only 1.3 has, each structure on the wire; `None` if the tenant gets the
    /// whole answer.
    pub(crate) fn own_answer_v13(
        &self,
        tenant: TenantIndex,
        body: Body<'_>,
        answers: &[u8],
    ) -> Option<Vec<Vec<u8>>> {
        match body {
            Body::Group { .. } => Some(self.group_statistics(tenant, answers)),
            Body::Meter { .. } => {
                let all = List::<MeterStats<'_>>::parse(answers).unwrap_or_default();
                let meters = self.numbers(tenant, Kind::Meter);
                let own = all.iter().filter_map(|meter| {
                    let meter_id = meters.of_physical(meter.meter_id)?;
                    Some(written(&MeterStats { meter_id, ..meter }))
                });
                Some(own.collect())
            }
            Body::TableFeatures(_) => Some(self.own_table_features(tenant, answers)),
            Body::GroupFeatures => Some(self.own_group_features(tenant, answers)),
            Body::MeterFeatures => Some(self.own_meter_features(tenant, answers)),
            _ => None,
        }
    }

    /// The question to the switch for the entries that a request wants.
    pub(crate) fn flow_question_v13(
        &self,
        tenant: TenantIndex,
        asked: &Wanted,
        aggregate: bool,
    ) -> Result<Vec<u8>, Refused> {
        if asked.table.is_some_and(|table| table >= self.tenant_tables(tenant)) {
            return Err(code::BAD_REQUEST_BAD_TABLE_ID.into());
        }
        let mut wanted = asked.match_;
        let mut out_port = asked.out_port;
        let is_network = self.tenants[tenant].network.is_some();
        if is_network {
            // Ports have other numbers on the switch, so the answer is filtered.
            wanted = wanted.without(Field::InPort);
            out_port = PortNo::ANY;
        }
        let (value, mask) = wanted.get(Field::Metadata);
        let id = self.tenants[tenant].id;
        let own = if self.datapath.is_joined() {
            (0, 0)
        } else {
            (metadata::of_tenant(id), metadata::TENANT)
        };
        let (value, mask) = (value | u128::from(own.0), mask | u128::from(own.1));
        let mut fields = MatchBuf::new();
        wanted
            .with_masked(Field::Metadata, value, mask)
            .to_v13(&mut fields)
            .map_err(|_| code::BAD_MATCH_BAD_WILDCARDS)?;
        let out_group = match asked.out_group {
            GROUP_ANY => GROUP_ANY,
            number => match self.numbers(tenant, Kind::Group).get(number) {
                // A group may have several instances, so the answer is filtered.
                Some(_) if is_network => GROUP_ANY,
                Some(known) => known.instances.id(),
                // No entry names a missing group: no question, and an empty answer.
                None if !aggregate => return Ok(Vec::new()),
                // An id that is never given out.
                None => v13::GROUP_MAX,
            },
        };
        let filter = FlowStatsRequest {
            table_id: physical_table(asked.table.unwrap_or(TABLE_ALL), self.target().first_table()),
            out_port,
            out_group,
            cookie: 0,
            cookie_mask: 0,
            match_: fields.as_match(),
        };
        Ok(ask(if aggregate { Body::Aggregate(filter) } else { Body::Flow(filter) }))
    }

    /// The question for the counters of the rules of table 0 that send packets to a tenant's tables, if there are such
    /// rules.
    pub(crate) fn question_of_table_0(&self, tenant: TenantIndex) -> Vec<u8> {
        if self.target().first_table() == 0 {
            return Vec::new();
        }
        let (cookie, cookie_mask) = cookies_of(self.tenants[tenant].id, self.settings.installation);
        ask(Body::Flow(FlowStatsRequest { table_id: 0, cookie, cookie_mask, ..Default::default() }))
    }

    /// The tenant's groups, as the tenant described them. Weir does not ask the switch.
    fn group_descriptions(&mut self, request: &Request<'_>) {
        let groups = self.numbers(request.tenant, Kind::Group);
        let described = groups.all().into_iter().filter_map(|group_id| {
            let GroupMod { type_, buckets, .. } = groups.get(group_id)?.group()?;
            Some(written(&GroupDesc { type_, group_id, buckets }))
        });
        self.reply_parts(request, MultipartType::GROUP_DESC, described.collect::<Vec<_>>());
    }

    /// The tenant's meters as it described them.
    fn meter_configurations(
        &mut self,
        request: &Request<'_>,
        meter_id: u32,
    ) -> Result<(), ErrorCode> {
        let meters = self.numbers(request.tenant, Kind::Meter);
        if meter_id != METER_ALL && meters.get(meter_id).is_none() {
            return Err(code::METER_MOD_FAILED_UNKNOWN_METER);
        }
        let wanted = meters.iter().filter(|(it, _)| meter_id == METER_ALL || meter_id == *it);
        let described = wanted.filter_map(|(meter_id, known)| {
            let MeterMod { flags, bands, .. } = MeterMod::parse(&known.body).ok()?;
            Some(written(&MeterConfig { flags, meter_id, bands }))
        });
        self.reply_parts(request, MultipartType::METER_CONFIG, described.collect::<Vec<_>>());
        Ok(())
    }
}
