//! Requests over the network: the patterns of `net` rows, what they allow, and the decision about one request.
//!
//! The rows of one template add up: a request is allowed if one of them allows it, with the widest limits of those that do. The
//! session's copy, the current template and the operator's list must each allow it; of their limits the narrowest apply.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use url::{Host, Url};
use vm_system_protocol::egress::{
    AddressReach, EgressRequest, EgressTerms, HttpRequest, SecretValue, secrets_in,
};
use vm_system_protocol::limits::{
    HTTP_EXCHANGES, HTTP_HEADER_BYTES, HTTP_HEADERS, HTTP_METHOD_BYTES, HTTP_PIECE_BYTES, HTTP_URL_BYTES,
};
use vm_system_protocol::worker::HostError;

/// Most patterns of all rows of a template: each request is compared with them.
pub const MAX_NET_PATTERNS: usize = 256;
/// Most methods and secrets of a row, and the longest name of a secret (bytes).
pub(super) const MAX_NET_METHODS: usize = 16;
pub(super) const MAX_NET_SECRETS: usize = 64;
pub(super) const SECRET_NAME_BYTES: usize = 64;
/// Longest pattern (bytes).
const PATTERN_BYTES: usize = 2_048;

/// A pattern of a request's URL: `[SCHEME://]HOST[:PORT][/PREFIX]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetPattern {
    /// `None`: both schemes.
    tls: Option<bool>,
    host: HostPattern,
    port: PortPattern,
    /// The path, or its beginning before a `/`; empty: any.
    prefix: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    /// Any name, but no address.
    Any,
    Name(String),
    /// Any name below this one.
    Below(String),
    Address(IpAddr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PortPattern {
    /// The scheme's own.
    Usual,
    Any,
    One(u16),
}

impl NetPattern {
    /// Parses a pattern; the error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{text:?} {why}"));
        if text.len() > PATTERN_BYTES {
            return Err(format!("a pattern has more than {PATTERN_BYTES} bytes"));
        }
        let (tls, rest) = match text.split_once("://") {
            Some(("https", rest)) => (Some(true), rest),
            Some(("http", rest)) => (Some(false), rest),
            Some(_) => return wrong("has another scheme than http and https"),
            None => (None, text),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') || path.contains(['?', '#', '*']) {
            return wrong("is not [SCHEME://]HOST[:PORT][/PREFIX]");
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let port = match port {
            None => PortPattern::Usual,
            Some("*") => PortPattern::Any,
            Some(port) => match port.parse() {
                Ok(one) if one > 0 && port.bytes().all(|digit| digit.is_ascii_digit()) => {
                    PortPattern::One(one)
                }
                _ => return wrong("has no valid port (1 to 65535, or *)"),
            },
        };
        let host = if host == "*" {
            HostPattern::Any
        } else if let Some(parent) = host.strip_prefix("*.") {
            match Host::parse(parent) {
                Ok(Host::Domain(name)) if !name.contains('*') => HostPattern::Below(name),
                _ => return wrong("has no valid name behind *."),
            }
        } else {
            match Host::parse(host) {
                Ok(Host::Domain(name)) if !name.contains('*') => HostPattern::Name(name),
                // A number alone would be an address, too: `3000` is 0.0.11.184, and was meant as a port.
                Ok(Host::Ipv4(address)) if address.to_string() != host => {
                    return wrong("is an IPv4 address in another form than four numbers (192.0.2.1)");
                }
                Ok(Host::Ipv4(address)) => HostPattern::Address(address.into()),
                Ok(Host::Ipv6(address)) => HostPattern::Address(address.into()),
                _ => return wrong("has no valid host (a name, *.NAME, *, or an address; IPv6 in brackets)"),
            }
        };
        // As in the URLs that it is compared with.
        let prefix =
            Url::parse(&format!("http://host{path}")).map_err(|_| format!("{text:?} has no valid path"))?;
        let prefix = prefix.path().trim_end_matches('/').to_owned();
        Ok(Self { tls, host, port, prefix })
    }

    pub(super) fn covers(&self, url: &NetUrl) -> bool {
        self.tls.is_none_or(|tls| tls == url.tls)
            && self.covers_host(&url.host)
            && match self.port {
                PortPattern::Any => true,
                PortPattern::Usual => url.port == usual_port(url.tls),
                PortPattern::One(port) => port == url.port,
            }
            && url
                .path
                .strip_prefix(&self.prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn covers_host(&self, host: &Host<String>) -> bool {
        match (&self.host, host) {
            (HostPattern::Any, Host::Domain(_)) => true,
            (HostPattern::Name(name), Host::Domain(host)) => name == host,
            (HostPattern::Below(parent), Host::Domain(host)) => {
                host.strip_suffix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (HostPattern::Address(IpAddr::V4(address)), Host::Ipv4(host)) => address == host,
            (HostPattern::Address(IpAddr::V6(address)), Host::Ipv6(host)) => address == host,
            _ => false,
        }
    }

    /// A pattern of the hosts that may get a secret: `https` unless it says `http://`; every host is named.
    pub fn of_secret(text: &str) -> Result<Self, String> {
        let mut pattern = Self::parse(text)?;
        if matches!(pattern.host, HostPattern::Any | HostPattern::Below(_)) {
            return Err(format!("{text:?} binds it to hosts that nobody knows: name them"));
        }
        pattern.tls.get_or_insert(true);
        Ok(pattern)
    }

    fn reach(&self, private: bool) -> AddressReach {
        match (&self.host, private) {
            (_, false) => AddressReach::Public,
            (HostPattern::Address(_), true) => AddressReach::Named,
            (_, true) => AddressReach::Private,
        }
    }
}

const fn usual_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

/// A secret of the operator: its value, and the hosts that may get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    pub value: SecretValue,
    pub hosts: Vec<NetPattern>,
}

/// The requests that one row, or the operator's list, allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetRule {
    pub patterns: Vec<NetPattern>,
    /// In upper case; empty: any.
    pub methods: BTreeSet<String>,
    /// Names may have private addresses, and addresses that a pattern names may be any.
    pub private: bool,
    /// Names of secrets that header fields may name; `None`: any.
    pub secrets: Option<BTreeSet<String>>,
    pub limits: NetLimits,
}

/// The limits of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetLimits {
    /// Requests of one execution.
    pub max_requests: u32,
    /// Requests of one execution at a time.
    pub concurrency: u32,
    /// Largest body of a request (bytes).
    pub max_request_bytes: u64,
    /// Largest body of a response, as it is transferred (bytes).
    pub max_response_bytes: u64,
    /// Bodies of all requests and responses of one execution (bytes).
    pub max_total_bytes: u64,
    /// Until the head of a response (milliseconds).
    pub headers_ms: u32,
    /// Until the end of a response (milliseconds).
    pub timeout_ms: u32,
}

impl NetLimits {
    /// No limits besides those of others.
    pub const NONE: Self = Self {
        max_requests: u32::MAX,
        concurrency: u32::MAX,
        max_request_bytes: u64::MAX,
        max_response_bytes: u64::MAX,
        max_total_bytes: u64::MAX,
        headers_ms: u32::MAX,
        timeout_ms: u32::MAX,
    };

    fn each(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        let small = |a: u32, b: u32| of(a.into(), b.into()) as u32;
        Self {
            max_requests: small(self.max_requests, other.max_requests),
            concurrency: small(self.concurrency, other.concurrency),
            max_request_bytes: of(self.max_request_bytes, other.max_request_bytes),
            max_response_bytes: of(self.max_response_bytes, other.max_response_bytes),
            max_total_bytes: of(self.max_total_bytes, other.max_total_bytes),
            headers_ms: small(self.headers_ms, other.headers_ms),
            timeout_ms: small(self.timeout_ms, other.timeout_ms),
        }
    }
}

impl Default for NetLimits {
    fn default() -> Self {
        Self {
            max_requests: 1_000,
            concurrency: HTTP_EXCHANGES as u32,
            max_request_bytes: 16 << 20,
            max_response_bytes: 64 << 20,
            max_total_bytes: 1 << 30,
            headers_ms: 30_000,
            timeout_ms: 60_000,
        }
    }
}

/// The requests that one execution may make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetRights {
    /// Each list must allow a request.
    lists: Vec<Vec<NetRule>>,
    /// The operator's, by name.
    secrets: BTreeMap<String, Secret>,
}

/// The rights that the lists grant to one URL and method.
struct Granted<'a> {
    reach: AddressReach,
    limits: NetLimits,
    /// Of each list, the rules that cover the request.
    rules: Vec<Vec<&'a NetRule>>,
}

impl Granted<'_> {
    /// Whether each list has a rule that names a secret.
    fn has_secret(&self, name: &str) -> bool {
        let names = |rule: &&NetRule| rule.secrets.as_ref().is_none_or(|names| names.contains(name));
        self.rules.iter().all(|rules| rules.iter().any(names))
    }
}

impl NetRights {
    /// The rows of one template.
    pub(super) fn new(rules: Vec<NetRule>) -> Self {
        Self { lists: vec![rules], secrets: BTreeMap::new() }
    }

    pub(super) fn and(mut self, other: &Self) -> Self {
        // Most sessions have a copy of what their template still is.
        for list in &other.lists {
            if !self.lists.contains(list) {
                self.lists.push(list.clone());
            }
        }
        self
    }

    /// The rights within the operator's list, which comes first: where it allows nothing, no other one is looked at.
    pub(super) fn limited_to(mut self, rules: &[NetRule], secrets: &BTreeMap<String, Secret>) -> Self {
        self.lists.insert(0, rules.to_vec());
        self.secrets.clone_from(secrets);
        self
    }

    /// The most requests of one execution, and bytes of bodies, that the rows allow to any URL.
    pub fn most(&self) -> (u32, u64) {
        let widest = |rules: &Vec<NetRule>| {
            let limits = rules.iter().map(|rule| rule.limits);
            limits.fold((0, 0), |most: (u32, u64), one| {
                (most.0.max(one.max_requests), most.1.max(one.max_total_bytes))
            })
        };
        let each = self.lists.iter().map(widest);
        each.fold((u32::MAX, u64::MAX), |least, one| (least.0.min(one.0), least.1.min(one.1)))
    }

    fn granted(&self, url: &NetUrl, method: &str) -> Option<Granted<'_>> {
        let mut granted: Option<Granted<'_>> = None;
        for list in &self.lists {
            let (reach, limits, rules) = allowed_by(list, url, method)?;
            granted = Some(match granted {
                None => Granted { reach, limits, rules: vec![rules] },
                Some(mut before) => {
                    before.rules.push(rules);
                    Granted {
                        reach: if width(before.reach) <= width(reach) { before.reach } else { reach },
                        limits: before.limits.each(&limits, u64::min),
                        rules: before.rules,
                    }
                }
            });
        }
        granted
    }
}

/// The rules of one list that cover a request, and the reach and limits that they allow together.
fn allowed_by<'a>(
    list: &'a [NetRule],
    url: &NetUrl,
    method: &str,
) -> Option<(AddressReach, NetLimits, Vec<&'a NetRule>)> {
    let mut all: Option<(AddressReach, NetLimits, Vec<&NetRule>)> = None;
    for rule in list.iter().filter(|rule| rule.methods.is_empty() || rule.methods.contains(method)) {
        // All patterns of a rule that cover one host have the same reach.
        let Some(pattern) = rule.patterns.iter().find(|pattern| pattern.covers(url)) else { continue };
        let reach = pattern.reach(rule.private);
        match &mut all {
            None => all = Some((reach, rule.limits, vec![rule])),
            Some((widest, limits, rules)) => {
                *widest = wider(*widest, reach);
                *limits = limits.each(&rule.limits, u64::max);
                rules.push(rule);
            }
        }
    }
    all
}

const fn width(reach: AddressReach) -> u8 {
    match reach {
        AddressReach::Public => 0,
        AddressReach::Private => 1,
        AddressReach::Named => 2,
    }
}

fn wider(a: AddressReach, b: AddressReach) -> AddressReach {
    if width(a) >= width(b) { a } else { b }
}

/// The parts of a URL that matter.
pub(super) struct NetUrl {
    tls: bool,
    host: Host<String>,
    port: u16,
    path: String,
    query: Option<String>,
}

impl NetUrl {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > HTTP_URL_BYTES {
            return Err(format!("the URL has more than {HTTP_URL_BYTES} bytes"));
        }
        let url = Url::parse(text).map_err(|error| format!("the URL is not valid: {error}"))?;
        let tls = match url.scheme() {
            "https" => true,
            "http" => false,
            other => return Err(format!("the scheme {other:?} is not supported (http, https)")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the URL has a user name or password; use the header field authorization".to_owned());
        }
        let host = url.host().ok_or("the URL has no host")?.to_owned();
        let port = url.port().unwrap_or_else(|| usual_port(tls));
        let query = url.query().map(str::to_owned);
        Ok(Self { tls, host, port, path: url.path().to_owned(), query })
    }

    /// `https://host:port`, without the scheme's own port.
    fn origin(&self) -> String {
        let (scheme, host) = (if self.tls { "https" } else { "http" }, &self.host);
        if self.port == usual_port(self.tls) {
            format!("{scheme}://{host}")
        } else {
            format!("{scheme}://{host}:{}", self.port)
        }
    }
}

/// A request that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedRequest {
    pub request: EgressRequest,
    /// For records: `https://example.com:8443`, and the path without the query.
    pub origin: String,
    pub path: String,
    /// Most at a time of this execution.
    pub concurrency: u32,
    /// Most requests of this execution.
    pub max_requests: u32,
    /// Most bytes of this execution.
    pub max_total_bytes: u64,
}

/// The code of a request that no capability allows.
pub(super) const NET_DENIED: &str = "ERR_NET_DENIED";

fn refused(code: &str, message: String) -> HostError {
    HostError { code: code.to_owned(), message }
}

/// Decides about a request; `rights` is `None` without a row.
pub(super) fn decide(
    rights: Option<&NetRights>,
    refusal: Option<&str>,
    request: HttpRequest,
) -> Result<AllowedRequest, HostError> {
    let invalid = |message: String| refused("ERR_INVALID_ARG_VALUE", message);
    let HttpRequest { method, url, headers, data, end } = request;
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    if !is_token(&method)
        || method.len() > HTTP_METHOD_BYTES
        || ["CONNECT", "TRACE", "TRACK"].contains(&method.as_str())
    {
        return Err(invalid("the method is not valid".to_owned()));
    }
    let bytes: usize = headers.iter().map(|header| header.name.len() + header.value.len()).sum();
    if headers.len() > HTTP_HEADERS || bytes > HTTP_HEADER_BYTES || data.len() > HTTP_PIECE_BYTES {
        return Err(invalid(format!(
            "more than {HTTP_HEADERS} header fields, or more than {HTTP_HEADER_BYTES} bytes of them"
        )));
    }
    let url = NetUrl::parse(&url).map_err(invalid)?;
    let origin = url.origin();
    let why = refusal.unwrap_or(
        "no capability of kind net of this session's template allows it, within what the daemon permits (allow_net)",
    );
    let denied =
        || refused(NET_DENIED, format!("{method} {origin}{} is not allowed: {why}", shown(&url.path)));
    let granted = rights.and_then(|rights| rights.granted(&url, &method)).ok_or_else(denied)?;
    let mut secrets: Vec<SecretValue> = Vec::new();
    for name in headers.iter().flat_map(|header| secrets_in(&header.value)) {
        if secrets.iter().any(|secret| secret.name == name) {
            continue;
        }
        let secret = rights.and_then(|rights| rights.secrets.get(name)).filter(|_| granted.has_secret(name));
        let bound = secret.filter(|secret| secret.hosts.iter().any(|pattern| pattern.covers(&url)));
        let Some(secret) = bound else {
            let name: String = name.chars().take(100).collect();
            let why = "a capability must name it, and the operator must have bound it to this host";
            return Err(refused(
                NET_DENIED,
                format!("the secret {name:?} is not granted for {origin}: {why}"),
            ));
        };
        secrets.push(secret.value.clone());
        if secrets.iter().map(|secret| secret.value.len()).sum::<usize>() > HTTP_HEADER_BYTES {
            return Err(invalid(format!("the secrets have more than {HTTP_HEADER_BYTES} bytes together")));
        }
    }
    let limits = granted.limits;
    let host = match &url.host {
        Host::Domain(name) => name.clone(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    let target = url.query.as_ref().map_or_else(|| url.path.clone(), |query| format!("{}?{query}", url.path));
    let terms = EgressTerms {
        owner: 0,
        own_ports: Vec::new(),
        reach: granted.reach,
        head_ms: limits.headers_ms,
        timeout_ms: limits.timeout_ms,
        max_request_bytes: limits.max_request_bytes,
        max_response_bytes: limits.max_response_bytes,
        secrets,
    };
    Ok(AllowedRequest {
        request: EgressRequest {
            method,
            tls: url.tls,
            host,
            port: url.port,
            target,
            headers,
            data,
            end,
            terms,
        },
        origin,
        path: shown(&url.path).to_owned(),
        concurrency: limits.concurrency,
        max_requests: limits.max_requests,
        max_total_bytes: limits.max_total_bytes,
    })
}

/// The part of a path that messages and records show.
fn shown(path: &str) -> &str {
    &path[..path.floor_char_boundary(1_000)]
}
