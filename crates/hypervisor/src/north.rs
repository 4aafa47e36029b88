//! Northbound: the controllers of all tenants on one switch, and the messages that wait for them.
//!
//! [`Controllers`] knows connections, roles and masks, and nothing of tables.

mod connections;
pub(super) mod controllers;

pub(crate) use connections::Connections;
pub(crate) use controllers::{
    Asynchronous, Controller, Controllers, Given, NorthLimits, Role, Wanted, types,
};
