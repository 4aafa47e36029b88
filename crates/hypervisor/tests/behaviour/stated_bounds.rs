//! Tests that the numbers in the documentation are the defaults of the settings and limits.

use hypervisor::policy::{Limits, Rate};
use hypervisor::{Duration, Settings};

const SECURITY: &str = include_str!("../../../../docs/security.md");
const CONFIGURATION: &str = include_str!("../../../../docs/configuration.md");

/// Fails unless the page has this text.
fn is_stated(page: &str, text: &str) {
    assert!(page.contains(text), "not stated: {text}");
}

#[test]
fn default_settings_equal_the_documented_values() {
    let settings = Settings::default();
    assert_eq!(settings.tenant_backlog, 256);
    is_stated(CONFIGURATION, "| `tenant_backlog` | messages, 1–1,048,576 | 256 |");
    assert_eq!(settings.tenant_work, 131_072);
    is_stated(SECURITY, "at most 131,072 units of work and 1 MiB per tenant and switch");
    is_stated(CONFIGURATION, "| – | entries examined | 131072 |");
    assert_eq!(settings.tenant_bytes, 1_048_576);
    is_stated(CONFIGURATION, "| – | bytes | 1048576 | memory for unfinished requests");
    assert_eq!(settings.tenant_bytes_in_all, 16_777_216);
    is_stated(SECURITY, "16 MiB per tenant on all switches");
    is_stated(CONFIGURATION, "| – | bytes | 16777216 | the same to all switches together");
    assert_eq!(settings.controller_bytes, 1_048_576);
    is_stated(CONFIGURATION, "| `controller_buffer` | bytes, 131,072–1,073,741,824 | 1048576 |");
    assert_eq!(settings.controller_bytes_limit, 8_388_608);
    is_stated(CONFIGURATION, "| 8388608, or `controller_buffer` if that is larger |");
    assert_eq!(settings.tenant_unread, 33_554_432);
    is_stated(SECURITY, "at most 32 MiB of unread answers and PACKET_INs per tenant");
    is_stated(CONFIGURATION, "| – | bytes | 33554432 | data that waits for all controllers");
    assert_eq!(settings.switch_bytes, 262_144);
    is_stated(CONFIGURATION, "| `switch_buffer` | bytes, 131,072–1,073,741,824 | 262144 |");
    assert_eq!(settings.reply_timeout, Duration::from_secs(10));
    is_stated(CONFIGURATION, "| `reply_timeout` | duration, 100 ms–10 min | `\"10s\"` |");
    assert_eq!(settings.batch, 128);
    is_stated(SECURITY, "applies a MODIFY or DELETE of many entries in batches of 128");
}

#[test]
fn default_tenant_limits_equal_the_documented_values() {
    let limits = Limits::default();
    assert_eq!(limits.flows, 10_000);
    is_stated(CONFIGURATION, "| `flows` | integer, entries per switch | 10000 |");
    assert_eq!(limits.entries, 100_000);
    is_stated(CONFIGURATION, "| `entries` | integer, rules per switch | 100000,");
    assert_eq!(limits.groups, 1_024);
    is_stated(CONFIGURATION, "| `groups` | integer, groups per switch | 1024,");
    assert_eq!(limits.meters, 256);
    is_stated(CONFIGURATION, "| `meters` | integer, meters per switch | 256,");
    assert_eq!(limits.state_changes, Rate { per_second: 50_000, burst: 100_000 });
    is_stated(CONFIGURATION, "| `{ rate = 50000, burst = 100000 }` |");
    let rates = [limits.packet_out, limits.flow_mod, limits.statistics, limits.packet_in];
    assert_eq!(rates, [None; 4]);
    is_stated(CONFIGURATION, "| `packet_out` | rate | no limit,");
}
