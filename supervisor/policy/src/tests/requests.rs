//! Requests over the network: which rows allow which of them, and how the lists narrow each other.

use super::*;
use crate::net::{NetLimits, NetPattern, NetRule, Secret};
use crate::{HttpPermit, Permit};
use std::collections::BTreeSet;
use vm_system_protocol::egress::{AddressReach, HttpCall, HttpHeader, HttpRequest, SecretValue};

/// A template with these configs of rows.
fn with_rows(configs: &[&str]) -> Snapshot {
    let rows = configs.iter().map(|config| Capability {
        config: JsonText::from_untrusted((*config).to_owned()),
        ..row(CapabilityKind::Net, "a", true)
    });
    Snapshot { capabilities: rows.collect(), ..Snapshot::default() }
}

fn rule(patterns: &[&str], private: bool) -> NetRule {
    let patterns = patterns.iter().map(|text| NetPattern::parse(text).expect("a pattern")).collect();
    NetRule { patterns, methods: BTreeSet::new(), private, secrets: None, limits: NetLimits::NONE }
}

/// An operator who permits everything that has a name, and 127.0.0.1.
fn wide_operator() -> Operator {
    Operator { net: vec![rule(&["*:*", "127.0.0.1:*", "169.254.169.254"], true)], ..Operator::default() }
}

fn request(method: &str, url: &str) -> HttpRequest {
    HttpRequest {
        method: method.to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        data: Vec::new(),
        end: true,
    }
}

/// The decision: reach and limits, or the error's code.
fn decide(policy: &EffectivePolicy, request: HttpRequest) -> Result<(AddressReach, u32), String> {
    let call = HttpCall::Open { exchange: 1, request };
    let (mut usage, mut session) = (HostUsage::default(), SessionUsage::default());
    match judge(policy, HostRequest::Http(call), &mut usage, &mut session) {
        Ok(Permit::Http(HttpPermit::Open { allowed, .. })) => {
            Ok((allowed.request.terms.reach, allowed.request.terms.timeout_ms))
        }
        Ok(other) => panic!("{other:?}"),
        Err(denial) => Err(denial.error.code),
    }
}

/// Whether one row allows a URL, beneath a wide operator.
fn allows(pattern: &str, url: &str) -> bool {
    let session = with_rows(&[&format!(r#"{{"allow":["{pattern}"]}}"#)]);
    let policy = super::super::effective(&session, None, &wide_operator());
    decide(&policy, request("GET", url)).is_ok()
}

#[test]
fn the_most_of_an_execution_is_the_least_of_what_the_lists_have_at_most() {
    let session = with_rows(&[
        r#"{"allow":["a"],"max_requests":5,"max_total_kb":1}"#,
        r#"{"allow":["b"],"max_requests":3,"max_total_kb":4}"#,
    ]);
    let current = with_rows(&[r#"{"allow":["a"],"max_requests":9,"max_total_kb":2}"#]);
    let most = |policy: EffectivePolicy| policy.net.map(|rights| rights.most());
    assert_eq!(most(super::super::effective(&session, None, &wide_operator())), Some((5, 4 << 10)));
    assert_eq!(most(super::super::effective(&session, Some(&current), &wide_operator())), Some((5, 2 << 10)));
}

#[test]
fn patterns_cover_scheme_host_port_and_path() {
    for (pattern, good, bad) in [
        (
            "api.test",
            &["https://api.test/", "http://api.test", "https://API.test:443/x"][..],
            &[
                "https://api.test:8443/",
                "https://x.api.test/",
                "https://api.test.evil/",
                "https://api.test./",
            ][..],
        ),
        ("https://api.test", &["https://api.test/"], &["http://api.test/", "http://api.test:443/"]),
        (
            "*.api.test:8080",
            &["http://a.api.test:8080/", "http://a.b.api.test:8080/"],
            &[
                "http://api.test:8080/",
                "http://.api.test:8080/",
                "http://xapi.test:8080/",
                "http://a.api.test/",
            ],
        ),
        ("api.test:*", &["http://api.test:1/", "https://api.test/"], &["http://other.test:1/"]),
        (
            "https://api.test/v1",
            &["https://api.test/v1", "https://api.test/v1/a?b", "https://api.test/x/../v1/a"],
            &[
                "https://api.test/v10",
                "https://api.test/",
                "https://api.test/v1/../v2",
                "https://api.test/v1/%2e%2e/v2",
            ],
        ),
        (
            "127.0.0.1",
            &["http://127.0.0.1/", "http://127.1/", "http://0x7f.0.0.1/", "http://2130706433/"],
            &["http://127.0.0.2/", "http://localhost/", "http://[::ffff:127.0.0.1]/"],
        ),
        (
            "*",
            &["https://any.test/", "http://any.test/"],
            &["https://any.test:1/", "http://127.0.0.1/", "http://[::1]/"],
        ),
    ] {
        for url in good {
            assert!(allows(pattern, url), "{pattern} covers {url}");
        }
        for url in bad {
            assert!(!allows(pattern, url), "{pattern} does not cover {url}");
        }
    }
}

#[test]
fn patterns_that_mean_nothing_are_refused() {
    for pattern in [
        "",
        "ftp://a.test",
        "a.test:0",
        "a.test:x",
        "a.test/?q",
        "a.test/*",
        "u@a.test",
        "*x.test",
        "a b",
        "[::1",
        "**",
        "*.a*b",
        "a.test:+80",
        "3000",
        "127.1",
        "0x7f.0.0.1",
        "127.0.0.01",
    ] {
        assert!(NetPattern::parse(pattern).is_err(), "{pattern}");
    }
}

#[test]
fn without_a_row_of_each_list_nothing_is_allowed() {
    let rows = with_rows(&[r#"{"allow":["a.test"]}"#]);
    let get = || request("GET", "https://a.test/");
    let none = Snapshot::default();
    let judged = |session, template, operator: &Operator| {
        decide(&super::super::effective(session, template, operator), get()).map(drop)
    };
    let denied = Err("ERR_NET_DENIED".to_owned());
    assert_eq!(judged(&rows, Some(&rows), &wide_operator()), Ok(()));
    assert_eq!(judged(&none, Some(&rows), &wide_operator()), denied, "an old session gains nothing");
    assert_eq!(judged(&rows, Some(&none), &wide_operator()), denied, "narrowing applies at once");
    assert_eq!(judged(&rows, Some(&rows), &Operator::default()), denied, "the operator permits nothing");
    let mut off = rows.clone();
    off.capabilities[0].enabled = false;
    assert_eq!(judged(&off, None, &wide_operator()), denied);
    let mut invalid = rows.clone();
    invalid.capabilities[0].config = JsonText::from_untrusted(r#"{"allow":["a.test"],"x":1}"#.to_owned());
    assert_eq!(judged(&invalid, None, &wide_operator()), denied);
}

#[test]
fn rows_add_up_and_lists_narrow() {
    let session = with_rows(&[
        r#"{"allow":["a.test"],"methods":["GET"],"timeout_ms":5000}"#,
        r#"{"allow":["*.test"],"methods":["GET","POST"],"timeout_ms":1000}"#,
        r#"{"allow":["a.test"],"private":true,"methods":["PUT"]}"#,
    ]);
    let policy = super::super::effective(&session, None, &wide_operator());
    let decide = |policy: &EffectivePolicy, method: &str, url: &str| decide(policy, request(method, url));
    assert_eq!(
        decide(&policy, "GET", "https://a.test/"),
        Ok((AddressReach::Public, 5_000)),
        "the wider limit"
    );
    assert_eq!(decide(&policy, "POST", "https://a.test/"), Ok((AddressReach::Public, 1_000)));
    assert!(decide(&policy, "DELETE", "https://a.test/").is_err());
    let (reach, _) = decide(&policy, "PUT", "https://a.test/").expect("allowed");
    assert_eq!(reach, AddressReach::Private);
    let narrow = Operator { net: vec![rule(&["a.test"], false)], ..Operator::default() };
    let policy = super::super::effective(&session, None, &narrow);
    let (reach, _) = decide(&policy, "PUT", "https://a.test/").expect("allowed");
    assert_eq!(reach, AddressReach::Public, "the operator permits no private addresses");
}

#[test]
fn only_a_named_address_is_reached_whatever_it_is() {
    let reach = |allow: &str, url: &str| {
        let session = with_rows(&[&format!(r#"{{"allow":["{allow}"],"private":true}}"#)]);
        let policy = super::super::effective(&session, None, &wide_operator());
        decide(&policy, request("GET", url)).map(|(reach, _)| reach)
    };
    assert_eq!(reach("169.254.169.254", "http://169.254.169.254/"), Ok(AddressReach::Named));
    assert_eq!(reach("*", "http://metadata.test/"), Ok(AddressReach::Private));
    assert!(reach("*", "http://169.254.169.254/").is_err());
}

#[test]
fn secrets_need_a_row_and_their_host() {
    let mut operator = wide_operator();
    let secret = Secret {
        value: SecretValue { name: "A".to_owned(), value: "hunter2".to_owned() },
        hosts: vec![NetPattern::parse("https://a.test").expect("a pattern")],
    };
    operator.secrets.insert("A".to_owned(), secret);
    let with_secret = |rows: &[&str], url: &str, name: &str| {
        let policy = super::super::effective(&with_rows(rows), None, &operator);
        let header = HttpHeader {
            name: "authorization".to_owned(),
            value: format!("Bearer {{secret:{name}}}").into_bytes(),
        };
        decide(&policy, HttpRequest { headers: vec![header], ..request("GET", url) }).map(drop)
    };
    let named = &[r#"{"allow":["*"],"secrets":["A"]}"#][..];
    let denied = Err("ERR_NET_DENIED".to_owned());
    assert_eq!(with_secret(named, "https://a.test/", "A"), Ok(()));
    assert_eq!(with_secret(named, "https://b.test/", "A"), denied, "another host");
    assert_eq!(with_secret(named, "http://a.test/", "A"), denied, "without TLS");
    assert_eq!(with_secret(named, "https://a.test/", "B"), denied, "no such secret");
    assert_eq!(with_secret(&[r#"{"allow":["*"]}"#], "https://a.test/", "A"), denied, "no row names it");
}

#[test]
fn malformed_requests_are_refused_before_any_rule() {
    let policy = super::super::effective(&with_rows(&[r#"{"allow":["*"]}"#]), None, &wide_operator());
    for (method, url) in [
        ("CONNECT", "https://a.test/"),
        ("GET\r\nX: y", "https://a.test/"),
        ("", "https://a.test/"),
        ("GET", "https://user:password@a.test/"),
        ("GET", "file:///etc/passwd"),
        ("GET", "/relative"),
        ("GET", &format!("https://a.test/{}", "x".repeat(20_000))),
    ] {
        assert_eq!(
            decide(&policy, request(method, url)),
            Err("ERR_INVALID_ARG_VALUE".to_owned()),
            "{method} {url:.40}"
        );
    }
}

#[test]
fn requests_of_one_execution_are_counted() {
    let session = with_rows(&[r#"{"allow":["*"],"max_requests":2}"#]);
    let policy = super::super::effective(&session, None, &wide_operator());
    let (mut usage, mut used) = (HostUsage::default(), SessionUsage::default());
    let mut open = || {
        let call = HttpCall::Open { exchange: 1, request: request("GET", "https://a.test/") };
        judge(&policy, HostRequest::Http(call), &mut usage, &mut used)
            .map(drop)
            .map_err(|denial| denial.error.code)
    };
    assert_eq!([open(), open(), open()], [Ok(()), Ok(()), Err("ERR_NET_LIMIT".to_owned())]);
}

/// The time of a decision is bounded, whatever rows a template has.
#[test]
fn rows_with_too_many_patterns_grant_nothing_and_refusals_are_counted() {
    let pattern = |count: usize| format!(r#"{{"allow":[{}]}}"#, vec![r#""a.test""#; count].join(","));
    let session = with_rows(&[&pattern(250), &pattern(7), r#"{"allow":["b.test"]}"#]);
    let policy = super::super::effective(&session, None, &wide_operator());
    assert!(decide(&policy, request("GET", "http://a.test/")).is_ok());
    assert_eq!(decide(&policy, request("GET", "http://b.test/")), Err("ERR_NET_DENIED".to_owned()));
    let (mut usage, mut session) = (HostUsage::default(), SessionUsage::default());
    let mut code = || {
        let call = HttpCall::Open { exchange: 1, request: request("GET", "http://b.test/") };
        let denial = judge(&policy, HostRequest::Http(call), &mut usage, &mut session).expect_err("refused");
        usage.denied(denial.module, denial.name);
        denial.error.code
    };
    assert!((0..1_000).all(|_| code() == "ERR_NET_DENIED"));
    assert_eq!(code(), "ERR_NET_LIMIT");
    for config in [
        format!(r#"{{"allow":["a"],"secrets":["{}"]}}"#, "x".repeat(65)),
        format!(r#"{{"allow":["a"],"secrets":[{}]}}"#, vec![r#""x""#; 65].join(",")),
        format!(r#"{{"allow":["a"],"methods":[{}]}}"#, vec![r#""X""#; 17].join(",")),
    ] {
        let config = JsonText::from_untrusted(config);
        assert!(crate::read_row(CapabilityKind::Net, "a", &config).is_err());
    }
}

#[test]
fn a_secret_goes_to_named_hosts_by_https_unless_http_is_written() {
    let covers = |pattern: &str, url: &str| {
        NetPattern::of_secret(pattern).expect(pattern).covers(&crate::net::NetUrl::parse(url).expect(url))
    };
    assert!(covers("a.test", "https://a.test/") && !covers("a.test", "http://a.test/"));
    assert!(covers("http://a.test", "http://a.test/"));
    for bad in ["*", "https://*", "https://*:443", "*.a.test", "https://*.a.test/x"] {
        assert!(NetPattern::of_secret(bad).is_err(), "{bad}");
    }
}
