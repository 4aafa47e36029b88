//! Tests of the web page in a real browser, with real switches and controllers: the views for each role, failed links,
//! and the editing of a network.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::own_networks::{TOPOLOGY, number, tenant};
use crate::support::app::App;
use crate::support::browser::{Browser, Colours};
use crate::support::folder::Folder;
use crate::support::network::{Network, V13};
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::{Weir, run};
use crate::support::{eventually, free_port, http};

/// The Tab key in WebDriver.
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

/// The MAC address of a host that the editor adds.
const HOST: &str = "02:00:00:00:00:77";

#[test]
fn ovs_the_web_page_shows_tenants_and_link_failures_and_edits_a_network() {
    needs!(ovs_the_web_page_shows_tenants_and_link_failures_and_edits_a_network: Needs::OpenVSwitch, Needs::OsKen,
        Needs::Program("chromium"), Needs::Program("chromedriver"));
    let network = Network::builtin(TOPOLOGY, V13);
    let apps = [App::learning_switch_13(), App::learning_switch_13()];
    let discovery = "[topology]\ndiscovery = true\nbandwidth = \"10Mbit\"\n";
    let [red, blue] = [tenant("red", &apps[0], 1), tenant("blue", &apps[1], 2)];
    let mut weir = Weir::serve_on(network.controller_host(), &format!("{discovery}{red}{blue}"));
    network.connect_to(weir.openflow);
    let browser = Browser::start();
    browser.resize(1440, 900);
    let page = format!("http://{}/", weir.api);
    browser.go(&page);
    browser.shows("live");
    eventually("all links are up on the page", || tile(&browser, "Links up") == "4 of 4");
    eventually("both tenants have all their controllers", || {
        tile(&browser, "Controllers") == "4 of 4"
    });
    assert_eq!(tile(&browser, "Switches"), "4");
    assert_eq!(tile(&browser, "Tenants"), "2");
    let _traffic = photographs().map(|_| traffic(&network, &weir));
    photograph(&browser, "network");

    shows_each_tenant_apart(&browser, &page);
    is_used_by_keyboard(&browser, &page);
    edits(&browser, &page, &weir);
    fits_a_phone(&browser, &page);
    shows_markup_as_it_is(&browser, &page, &weir);

    // Each end of a link has a load from the port counters of the switches. No tenant gets labels here, so Weir follows
    // no flows.
    eventually("the links have loads", || {
        let (_, summary) = weir.get("/api/v1/summary");
        let summary: Value = serde_json::from_str(&summary).expect("JSON");
        let links = summary["links"].as_array().expect("links").clone();
        links.len() == 4
            && links.iter().all(|it| it["load"].as_array().is_some_and(|it| it.len() == 2))
    });

    // The page shows a failed link without a reload.
    browser.go(&format!("{page}#/"));
    network.set_port("s1", "s1-eth3", "down");
    eventually("the page shows the link that failed", || tile(&browser, "Links up") == "3 of 4");
    browser.shows("a link is down");
    browser.run("window.kept = true");
    network.set_port("s1", "s1-eth3", "up");
    eventually("the page shows that it is back", || tile(&browser, "Links up") == "4 of 4");
    assert_eq!(browser.run("return window.kept"), true, "it was loaded anew");
    assert_eq!(browser.complaints(), [""; 0]);
    asked_for_nothing_else(&browser, &weir);

    // Weir is killed and restarted. The page waits, and then shows the new Weir.
    weir.crash();
    browser.shows("Weir does not answer");
    weir.restart();
    eventually("the page shows the new Weir", || {
        browser.text().contains("live") && tile(&browser, "Links up") == "4 of 4"
    });
}

#[test]
fn the_web_page_shows_each_role_only_its_permitted_views() {
    needs!(the_web_page_shows_each_role_only_its_permitted_views:
        Needs::Program("chromium"), Needs::Program("chromedriver"));
    let folder = Folder::new();
    let (openflow, api) = ([127, 0, 0, 1], SocketAddr::from(([127, 0, 0, 1], free_port())));
    let openflow = SocketAddr::from((openflow, free_port()));
    let socket = format!("unix:{}", folder.join("api.sock"));
    let listen = format!("[listen]\nopenflow = \"{openflow}\"\napi = [\"{api}\", \"{socket}\"]\n");
    let own = |name: &str, port: u32| {
        format!(
            "[[tenants]]\nname = \"{name}\"\n[tenants.network]\n\
             [[tenants.network.switches]]\ndpid = \"0xa{port}\"\nname = \"of-{name}\"\non = \"1\"\n\
             [[tenants.network.ports]]\nswitch = \"0xa{port}\"\nnumber = 1\nat = \"1 port {port}\"\n"
        )
    };
    let tenants = own("red", 1) + &own("blue", 2);
    let weir = Weir::start(folder, openflow, api, &format!("{listen}{tenants}"));
    let token = |arguments: &[&str]| {
        let made = run(&[&["ctl", "--api", &socket, "token", "create"], arguments].concat());
        assert_eq!(made.0, Some(0), "{made:?}");
        made.1.split_whitespace().find(|it| it.starts_with("weir_")).expect("a token").to_owned()
    };
    let [admin, metrics] = ["admin", "metrics"].map(|role| token(&["--role", role]));
    let red = token(&["--role", "tenant", "--tenant", "red"]);
    let browser = Browser::start();
    browser.resize(1440, 900);
    let page = format!("http://{api}/");
    let views =
        || browser.run("return document.getElementById('nav').innerText.split(/\\s+/).join(' ')");

    // A browser on this machine has the operator's role without an account, and may not change a network.
    browser.go(&page);
    browser.shows("live");
    assert_eq!(views(), "Network Tenants Switches Log");
    browser.go(&format!("{page}#/edit/blue"));
    browser.shows("You may look at this network, and not change it.");
    browser.shows("of-blue");
    assert_eq!(browser.run("return document.getElementById('commit')"), Value::Null);

    sign_in(&browser, &admin);
    browser.go(&format!("{page}#/edit/blue"));
    browser.shows("Dry run");

    // A tenant sees and changes its own network, and sees no other tenant.
    sign_in(&browser, &red);
    browser.shows("The network that red’s controllers see.");
    assert_eq!(views(), "Network Figures Log");
    for (view, words) in [
        ("#/", "The network that red’s controllers see."),
        ("#/tenants/red", "Messages by kind"),
        ("#/log", "Changes and faults"),
        ("#/edit/red", "of-red"),
    ] {
        browser.go(&format!("{page}{view}"));
        browser.shows(words);
        let all = browser.run("return document.documentElement.innerHTML");
        assert!(!all.to_string().contains("blue"), "{view}: {all}");
    }
    for view in ["#/tenants/blue", "#/edit/blue", "#/network/blue", "#/switches", "#/tenants"] {
        browser.go(&format!("{page}{view}"));
        browser.shows("live");
        let text = browser.text();
        let has_others = ["of-blue", "Owner and path"].iter().any(|words| text.contains(words));
        assert!(!has_others, "{view}: {text}");
    }
    for path in ["summary", "log", "networks", "topology"] {
        let script = format!(
            "const answer = await fetch('/api/v1/{path}', {{headers: {{Authorization: 'Bearer {red}'}}}}); return await answer.text()"
        );
        let answer = browser.run(&script).to_string();
        assert!(answer.len() > 2 && !answer.contains("blue"), "{path}: {answer}");
    }
    browser.go(&format!("{page}#/edit/red"));
    browser.shows("of-red");
    browser.click("[aria-label^='Stop port']");
    browser.click("#dry-run");
    browser.shows("This would change");
    browser.click("#commit");
    browser.shows("This has changed");
    browser.shows("stopped");

    // A revoked token is refused, also on a page that is open already.
    let revoked = run(&["ctl", "--api", &socket, "token", "revoke", "3"]);
    assert_eq!(revoked.0, Some(0), "{revoked:?}");
    browser.shows("This token is not known any more, or has expired.");
    browser.write("#token", &format!("nonsense{ENTER}"));
    browser.shows("This token is not known, or has expired.");
    browser.write("#token", &format!("{metrics}{ENTER}"));
    browser.shows("This token reads metrics alone");
    assert_eq!(views(), "");

    // With `loopback = "accounts"` the page requests a token on this machine as well.
    browser.run("sessionStorage.clear()");
    weir.write_config(&format!("{listen}[api]\nloopback = \"accounts\"\n{tenants}"));
    let mark = weir.log_mark();
    weir.hang_up();
    weir.expect_log(mark, &["the configuration was taken over"]);
    browser.go("about:blank");
    browser.go(&page);
    browser.shows("Sign in");
    assert!(!browser.text().contains("live"), "{}", browser.text());
    browser.write("#token", &format!("{admin}{ENTER}"));
    browser.shows("live");
}

/// Signs out, and signs in with another token, by the elements of the page.
fn sign_in(browser: &Browser, token: &str) {
    browser.click("#leave");
    browser.write("#token", &format!("{token}{ENTER}"));
    browser.shows("live");
    browser.shows("Sign out");
}

/// Returns the value of a tile in the view.
fn tile(browser: &Browser, name: &str) -> String {
    let script = format!(
        "return [...document.querySelectorAll('.tile')].find((it) => it.firstChild.textContent === '{name}')?.lastChild.textContent"
    );
    browser.run(&script).as_str().unwrap_or_default().to_owned()
}

/// The text of the main part of a view.
fn content(browser: &Browser) -> String {
    let text = browser.run("return document.getElementById('content').innerText");
    text.as_str().unwrap_or_default().to_owned()
}

fn shows_each_tenant_apart(browser: &Browser, page: &str) {
    browser.go(&format!("{page}#/tenants"));
    browser.shows("2 of 2");
    let rows = browser.run("return [...document.querySelectorAll('tbody tr')].map((it) => it.cells[0].innerText.trim())");
    assert_eq!(rows, json!(["red", "blue"]));
    photograph(browser, "tenants");
    browser.click("a[href='#/tenants/red']");
    browser.shows("flow_mod");
    browser.shows("connected for 2 switches");
    browser.shows("Messages per second, by kind");
    photograph(browser, "tenant");
    assert!(!content(browser).contains("blue"), "{}", content(browser));
    // The form shows the path of a packet and the reason for the path.
    browser.shows("Last refused requests");
    browser.write("#trace-switch", "0xa1");
    browser.write("#trace-flow", "in_port=1,ip,nw_dst=10.0.0.2");
    browser.write("#trace-flow", ENTER);
    browser.shows("red's, by the port 1 of its switch 00:00:00:00:00:00:00:a1");
    browser.go(&format!("{page}#/tenants/nobody"));
    browser.shows("There is no tenant nobody");
    browser.go(&format!("{page}#/switches"));
    browser.shows("00:00:00:00:00:00:00:04");
    // The form shows the owner and the path of a packet at a port of the physical network.
    browser.shows("Owner and path of a packet");
    browser.write("#trace-switch", "1");
    browser.write("#trace-flow", "in_port=1,ip,nw_dst=10.0.0.2");
    browser.write("#trace-flow", ENTER);
    browser.shows("red's, by the port 1 of its switch 00:00:00:00:00:00:00:a1");
    // The map draws the places of switches and links. A list has them for people who do not see the map.
    browser.go(&format!("{page}#/network/red"));
    browser.shows("Where red’s network lies");
    let found = browser.run(
        "return [...document.getElementById('find').options].map((it) => it.textContent).join('|')",
    );
    let found = found.as_str().unwrap_or_default();
    assert_eq!(found.matches("switch ").count(), 4, "{found}");
    assert_eq!(found.matches("link ").count(), 4, "{found}");
    photograph(browser, "map");
}

/// Selects another view and an element of the map by the keyboard.
fn is_used_by_keyboard(browser: &Browser, page: &str) {
    browser.go("about:blank");
    browser.go(page);
    browser.shows("live");
    let focus = || browser.run("return document.activeElement.textContent");
    browser.press(&[TAB]);
    assert_eq!(focus(), "Skip to content");
    browser.press(&[TAB, TAB, TAB]);
    assert_eq!(focus(), "Switches");
    browser.press(&[ENTER]);
    browser.shows("Window: messages that may be unacknowledged");
    browser.go(&format!("{page}#/"));
    browser.shows("Find…");
    browser.run("document.getElementById('find').focus()");
    browser.press(&["s"]);
    browser.shows("Datapath id");
}

fn edits(browser: &Browser, page: &str, weir: &Weir) {
    let hosts = || {
        let (_, body) = weir.get("/api/v1/networks/red");
        let network: Value = serde_json::from_str(&body).expect("JSON");
        network["network"]["hosts"].to_string()
    };
    browser.go(&format!("{page}#/edit/red"));
    browser.shows("a1 port 1");
    let is_disabled =
        |id: &str| browser.run(&format!("return document.getElementById('{id}').disabled")) == true;
    assert!(is_disabled("dry-run") && is_disabled("commit"), "there is nothing to do yet");
    browser.run("document.getElementById('put-host-mac').closest('details').open = true");
    browser.write("#put-host-mac", HOST);
    browser.write("#put-host-address", "10.0.0.77");
    // The port does not exist: the dry run is refused, and the commit button is disabled.
    browser.write("#put-host-at", "0xa1 port 9");
    browser.write("#put-host-at", ENTER);
    browser.click("#dry-run");
    browser.shows("refused; nothing was changed");
    assert!(is_disabled("commit"));
    // For a refusal the browser itself writes a message to the console, and no other message is there.
    let complaints = browser.complaints();
    assert!(matches!(complaints.as_slice(), [one] if one.contains("409")), "{complaints:?}");
    browser.click("ol.pending button");

    browser.write("#put-host-mac", HOST);
    browser.write("#put-host-address", "10.0.0.77");
    browser.write("#put-host-at", "0xa1 port 1");
    browser.write("#put-host-at", ENTER);
    browser.click("#dry-run");
    browser.shows("This would change");
    browser.shows(&format!("host {HOST}"));
    photograph(browser, "edit");
    assert!(!hosts().contains(HOST), "a dry run has changed the network");
    browser.click("#commit");
    browser.shows("This has changed");
    assert!(hosts().contains(HOST));
    eventually("the host is in the table", || {
        let rows = browser.run(
            "return [...document.querySelectorAll('tbody tr')].map((it) => it.innerText).join()",
        );
        rows.as_str().unwrap_or_default().contains(HOST)
    });
    // The log shows the change.
    browser.go(&format!("{page}#/log"));
    browser.shows("a network was changed by REST");
    photograph(browser, "log");
}

fn shows_markup_as_it_is(browser: &Browser, page: &str, weir: &Weir) {
    let name = "<img src=x onerror=\"window.obeyed = true\">";
    let change = json!([{"change-switch": {"dpid": "0xa1", "name": name}}]).to_string();
    let changes = "/api/v1/networks/red/changes";
    assert_eq!(http::post(weir.api, changes, &change).map(|(status, _)| status), Some(200));
    for view in ["#/edit/red", "#/network/red", "#/log", "#/"] {
        browser.go(&format!("{page}{view}"));
        if view != "#/network/red" {
            browser.shows(name);
        }
        assert_eq!(browser.run("return window.obeyed ?? document.images.length"), 1, "{view}");
    }
    let change = json!([{"change-switch": {"dpid": "0xa1", "name": "near"}}]).to_string();
    assert!(http::post(weir.api, changes, &change).is_some());
}

fn fits_a_phone(browser: &Browser, page: &str) {
    browser.resize(390, 844);
    for (view, words, name) in [
        ("#/network/red", "Edit this network", "map"),
        ("#/tenants", "Share used", "tenants"),
        ("#/tenants/red", "flow_mod", "tenant"),
        ("#/switches", "Unacknowledged", "switches"),
        ("#/edit/red", "Dry run", "edit"),
        ("#/log", "a link is up", "log"),
    ] {
        browser.go(&format!("{page}{view}"));
        browser.shows(words);
        photograph(browser, name);
        let wide = browser.run("return document.documentElement.scrollWidth");
        assert!(wide.as_u64().is_some_and(|wide| wide <= 390), "{view} is {wide} wide");
    }
    browser.resize(1440, 900);
}

/// Asserts that the browser sends requests only to Weir, and that each requested path is a page file or in the OpenAPI
/// document.
fn asked_for_nothing_else(browser: &Browser, weir: &Weir) {
    let (_, document) = weir.get("/api/v1/openapi.json");
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let paths: Vec<&String> = document["paths"].as_object().expect("paths").keys().collect();
    let own = format!("http://{}/", weir.api);
    let asked = browser.asked();
    assert!(asked.len() > 20, "{asked:?}");
    for request in asked.iter().filter(|it| it.url != "about:blank") {
        let path = request.url.strip_prefix(&own);
        let path = path.unwrap_or_else(|| panic!("asked elsewhere: {request:?}"));
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let fits = |template: &str| {
            let template = template.trim_start_matches('/').split('/');
            template.clone().count() == path.split('/').count()
                && template.zip(path.split('/')).all(|(a, b)| a == b || a.starts_with('{'))
        };
        let is_file = path.is_empty() || path.starts_with("page/");
        let method = request.method.to_lowercase();
        let said =
            paths.iter().any(|it| fits(it) && document["paths"][it.as_str()][&method].is_object());
        assert!(is_file || said, "not in the document: {request:?}");
    }
}

/// Saves light and dark pictures of the page for docs/dashboard.md, if `WEIR_PHOTOGRAPHS` names a folder. A picture of
/// a narrow window has the visible part, and a picture of a wide window has the whole page.
fn photograph(browser: &Browser, name: &str) {
    let Some(folder) = photographs() else { return };
    let wide = browser.run("return innerWidth");
    let is_whole = wide.as_u64().is_some_and(|wide| wide > 600);
    for (colours, word) in [(Colours::Dark, "dark"), (Colours::Light, "light")] {
        browser.colours(colours);
        // The map is drawn when the browser has time.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        let picture = folder.join(format!("{name}-{wide}-{word}.png.base64"));
        fs::write(picture, browser.photograph(is_whole)).expect("a picture");
    }
}

fn photographs() -> Option<PathBuf> {
    std::env::var_os("WEIR_PHOTOGRAPHS").map(PathBuf::from)
}

/// Lets a host of each tenant send pings until links have loads, so that the pictures show loads.
fn traffic(network: &Network, weir: &Weir) -> [Program; 2] {
    let hosts = [["h1", "h3"], ["h2", "h4"]];
    number(network, hosts);
    eventually("hosts reach each other", || {
        hosts.iter().all(|[first, _]| network.answers(first, "10.0.0.2"))
    });
    let ping = |host: &str, every: &str| {
        network.program(host, &["ping", "-q", "-i", every, "-s", "1000", "10.0.0.2"])
    };
    let sending = [ping("h1", "0.002"), ping("h2", "0.005")];
    eventually("links have loads", || {
        let (_, summary) = weir.get("/api/v1/summary");
        let summary: Value = serde_json::from_str(&summary).expect("JSON");
        let links = summary["links"].as_array().expect("links").iter();
        let mut loads = links.filter_map(|it| it["load"][0].as_u64());
        loads.any(|load| load > 1_000_000)
    });
    sending
}
