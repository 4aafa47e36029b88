//! Addresses of listeners and controllers.

use channel::{Address, Scheme};

use super::reader::Value;

/// An address of a listener or a controller; `ssl:` needs certificates.
pub(super) fn address(
    value: &Value<'_, '_>,
    has_authority: bool,
    authority: &str,
) -> Option<Address> {
    let address: Address = value.parsed()?;
    if address.scheme == Scheme::Ssl && !has_authority {
        let help = format!("add a section [tls] with private_key, certificate and {authority}");
        return value.refuse("an ssl: address needs certificates", Some(help));
    }
    Some(address)
}
