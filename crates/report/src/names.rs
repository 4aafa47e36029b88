//! Converts names of tools, metrics and parameters to words.

/// The title of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Title<'a> {
    /// The heading at the top of the report.
    pub heading: &'a str,
    /// The reproduced paper and its figure.
    pub source: Option<&'a str>,
}

/// The title of a tool's report. The heading of a reproduced paper is the title of the paper.
#[must_use]
pub fn tool_title(tool: &str) -> Title<'_> {
    let (heading, source) = match tool {
        "reproduce basta2017" => (
            "Logically Isolated, Actually Unpredictable? Measuring Hypervisor Performance in Multi-Tenant SDNs",
            "Figures 3a, 3b, 3c, 4, 5, 6 and table 1 of Basta, Blenk, Kellerer and Schmid (2017), measured again.",
        ),
        "reproduce oflops2012" => (
            "OFLOPS: An Open Framework for OpenFlow Switch Evaluation",
            "Table 2 and figures 2 to 6 of Rotsos, Sarrar, Uhlig, Sherwood and Moore (2012), measured again.",
        ),
        "reproduce riggio2013" => (
            "The Price of Virtualization: Performance Isolation in Multi-Tenants Networks",
            "Figures 4a, 4b and 4c of Riggio, De Pellegrini and Siracusa (2013), measured again.",
        ),
        "reproduce riggio2013-edge" => (
            "The Price of Virtualization: Performance Isolation in Multi-Tenants Networks",
            "Section II (figures 1d and 2c) of Riggio, De Pellegrini and Siracusa (2013), measured again.",
        ),
        "reproduce elbouanani2019" => (
            "Collaborative Traffic Measurement in Virtualized Data Center Networks",
            "Figures 2a, 2b and 3 of Elbouanani, Barakat, Urvoy-Keller and Lopez-Pacheco (2019), measured and computed again.",
        ),
        "sampling calibrate" => ("What sampling costs on this machine", ""),
        "sampling simulate" => ("What servers gain by sampling together", ""),
        "fabric simulate" => ("Paths chosen by link labels, beside the optimum", ""),
        "bench relay" => ("Weir and HAProxy as relays", ""),
        "bench saturation" => ("As many PACKET_INs as pass", ""),
        "bench tenants" => ("Many tenants at a constant total rate", ""),
        "bench isolation-switch" => ("A busy neighbour on a slow switch", ""),
        "bench isolation-delays" => ("A busy neighbour on a slow switch with delays", ""),
        "bench isolation-flood" => ("A neighbour who floods", ""),
        "bench memory" => ("Memory with many rules", ""),
        "bench networks" => ("Tenants' own networks beside slices", ""),
        "bench labels" => ("What link labels cost", ""),
        "bench work" => ("CPU time per message", ""),
        "bench generator" => ("The load generator by itself", ""),
        "bench hostile" => ("Quiet among hostile tenants", ""),
        "bench search" => ("The highest rate that a system stands", ""),
        "bench provisioning" => ("How fast a network starts and moves", ""),
        "bench controller" => ("A controller, seen by emulated switches", ""),
        "evaluate all" => ("What this switch really does", ""),
        "demo" => ("Two tenants on one switch", ""),
        other => (other, ""),
    };
    Title { heading, source: (!source.is_empty()).then_some(source) }
}

/// The name of a metric in words, without the unit.
#[must_use]
pub fn metric_in_words(name: &str) -> String {
    let known = match name {
        "p50_us" => "median latency",
        "p90_us" => "90th percentile of latency",
        "p99_us" => "99th percentile of latency",
        "p999_us" => "99.9th percentile of latency",
        "mean_us" => "mean latency",
        "max_us" => "greatest latency",
        "median_us" => "median",
        "deviation_us" => "standard deviation",
        "rate_per_s" => "messages passed",
        "highest_loss_free_per_s" => "highest rate without loss",
        "cpu_percent" => "CPU of the system under test",
        "all_rules_us" => "all entries real",
        "last_rule_us" => "last entry real",
        "barrier_us" => "barrier answered",
        "sent_us" => "all sent",
        "lie_at_least_us" => "barrier early by at least",
        "lie_at_most_us" => "barrier early by at most",
        "capacity_rules" => "entries that fit",
        "lag_p99_us" => "generator's lag, 99th percentile",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    let ends = ["_per_s", "_percent", "_mbit_s", "_us", "_ms", "_bytes", "_mbps", "_ppm", "_s"];
    let name = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    name.replace('_', " ")
}

/// The name of a parameter in words, as the label of an axis.
#[must_use]
pub fn parameter_in_words(name: &str) -> String {
    match name {
        "rate" => "messages per second".to_owned(),
        "rules" | "fill_up_to" => "flow entries".to_owned(),
        "polls_per_s" => "polls of statistics per second".to_owned(),
        "actions" => "modifications of a packet".to_owned(),
        "length" => "bytes of a packet".to_owned(),
        "labels_every_s" => "seconds between updates of labels".to_owned(),
        other => other.replace('_', " "),
    }
}

/// The text with a capital letter at its start.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The label of a measured quantity: its name and its unit.
#[must_use]
pub fn with_unit(name: &str, unit: &str) -> String {
    let unit = match unit {
        "1/s" => "per second",
        "packet/s" => "packets per second",
        other => other,
    };
    if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_names_units_and_tool_titles_are_given_in_words() {
        assert_eq!(metric_in_words("p50_us"), "median latency");
        assert_eq!(metric_in_words("cpu_user_percent"), "cpu user");
        assert_eq!(with_unit("messages passed", "1/s"), "messages passed, per second");
        assert!(tool_title("reproduce oflops2012").source.is_some());
        assert_eq!(tool_title("<b>"), Title { heading: "<b>", source: None });
    }
}
