//! Reads the options that name interfaces to a switch's ports.

use evaluate::DataPort;

/// Reads `INTERFACE[@NAMESPACE]=PORT`.
pub fn data_port(text: &str) -> Result<DataPort, String> {
    let wrong = || "not INTERFACE=PORT or INTERFACE@NAMESPACE=PORT".to_owned();
    let (name, port) = text.rsplit_once('=').ok_or_else(wrong)?;
    let switch_port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    Ok(DataPort { switch_port, ..interface(name)? })
}

/// Reads `INTERFACE[@NAMESPACE]`.
pub fn interface(text: &str) -> Result<DataPort, String> {
    let (interface, namespace) = match text.split_once('@') {
        Some((interface, namespace)) => (interface, Some(namespace.to_owned())),
        None => (text, None),
    };
    if interface.is_empty() || namespace.as_deref() == Some("") {
        return Err("not INTERFACE or INTERFACE@NAMESPACE".to_owned());
    }
    Ok(DataPort { interface: interface.to_owned(), namespace, switch_port: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_ports_are_parsed_with_an_optional_namespace() {
        let port = data_port("eth1@ns=3").unwrap();
        assert_eq!((port.interface.as_str(), port.switch_port), ("eth1", 3));
        assert_eq!(port.namespace.as_deref(), Some("ns"));
        for text in ["eth1", "eth1=", "eth1=0", "=1", "eth1@=1"] {
            assert!(data_port(text).is_err(), "{text}");
        }
    }
}
